// The distributions of two halves of a bag, put together: slices of their log-probabilities under a tilt, and the
// convolution of the slices, directly or by a fast Fourier transform. Only for the kernel units.
//
// Two real slices a and b are one complex signal z = a + ib, and z * z = (a * a - b * b) + 2i (a * b): a transform,
// squares, and a transform back. Nobody looks at the frequencies, so they stay in the order in which they come: the way
// there splits by fours from the outside in, the way back joins them from the inside out, and nothing is ever sorted.
// Blocks of `lanes` numbers are left at the bottom; `lanes` of them at a time are transposed, so that one number of
// each is in a register.
#pragma once

#include "kernel_lanes.h"
#include "kernels.h"

namespace {

using kofn::Mass;

// out_k = e^{(logs_k - base) + tilt (k + from) - peak} and its sums: a slice whose largest is one.
Mass lean(const double* logs, int64_t n, double base, double tilt, double from, double peak, double* out) {
    Lanes total{}, first{}, second{};
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes k = counting() + static_cast<double>(i), x = load_some(logs + i, n - i, -__builtin_inf());
        const Lanes v = exp_nonpositive(min(((x - base) + tilt * (k + from)) - peak, Lanes{}));
        store_some(out + i, n - i, v);
        total += v;
        first += k * v;
        second += k * k * v;
    }
    const double mass = sum(total), mean = sum(first) / mass;
    return {mean, sum(second) / mass - mean * mean};
}

// The way back, in place: x_k becomes log(x_k) + base - tilt (k + from).
void straighten(double* x, int64_t n, double base, double tilt, double from) {
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes k = counting() + static_cast<double>(i);
        store_some(x + i, n - i, log_positive(load_some(x + i, n - i, 1.0)) + (base - tilt * (k + from)));
    }
}

// out_k = sum_i a_i b_{k-i}, na + nb - 1 numbers. Every term is positive: so is every digit right.
void convolve(const double* a, int64_t na, const double* b, int64_t nb, double* out) {
    for (int64_t k = 0; k < na + nb - 1; ++k) out[k] = 0.0;
    for (int64_t i = 0; i < na; ++i) {
        int64_t j = 0;
        for (; j + lanes <= nb; j += lanes) store(out + i + j, load(out + i + j) + a[i] * load(b + j));
        for (; j < nb; ++j) out[i + j] += a[i] * b[j];
    }
}

// Signals as the transform has them: real and imaginary parts, each one after the other.
struct Signal {
    double *re, *im;

    Complex at(int64_t k) const { return {load(re + k), load(im + k)}; }
    void set(int64_t k, Complex v) const {
        store(re + k, v.re);
        store(im + k, v.im);
    }
};

// w^k, w^2k and w^3k, w = e^{-2 pi i / length}, for k < length / 4: six rows, those of every length behind those of all
// shorter ones.
struct Roots {
    const double* row;
    int64_t quarter;

    Roots(const double* table, int64_t length) : row(table + length / 4 * 6), quarter(length / 4) {}
    Complex power(int j, int64_t k) const {  // j = 1, 2, 3
        return {load(row + (2 * j - 2) * quarter + k), load(row + (2 * j - 1) * quarter + k)};
    }
};

// A table for transforms of up to `longest` numbers, fft_roots(longest) of them.
void make_roots(int64_t longest, double* table) {
    for (int64_t length = 4 * lanes; length <= 2 * longest; length *= 2) {
        const int64_t quarter = length / 4;
        double* row = table + quarter * 6;
        for (int64_t k = 0; k < quarter; k += lanes)
            for (int j = 1; j <= 3; ++j) {
                const Turn w =
                    turn(static_cast<double>(-j) * (counting() + static_cast<double>(k)), static_cast<double>(length));
                store(row + (2 * j - 2) * quarter + k, w.cosine);
                store(row + (2 * j - 1) * quarter + k, w.sine);
            }
    }
}

// One transform of `length` becomes four of a quarter of it.
void split_by_four(Signal x, int64_t n, int64_t length, const double* table) {
    const Roots roots(table, length);
    const int64_t q = length / 4;
    for (int64_t start = 0; start < n; start += length)
        for (int64_t k = start; k < start + q; k += lanes) {
            const Complex a = x.at(k), b = x.at(k + q), c = x.at(k + 2 * q), d = x.at(k + 3 * q);
            const Complex even = a + c, odd = a - c, pair = b + d, turned = times_i(b - d);
            x.set(k, even + pair);
            x.set(k + q, (odd - turned) * roots.power(1, k - start));
            x.set(k + 2 * q, (even - pair) * roots.power(2, k - start));
            x.set(k + 3 * q, (odd + turned) * roots.power(3, k - start));
        }
}

void join_four(Signal x, int64_t n, int64_t length, const double* table) {
    const Roots roots(table, length);
    const int64_t q = length / 4;
    for (int64_t start = 0; start < n; start += length)
        for (int64_t k = start; k < start + q; k += lanes) {
            const Complex a = x.at(k), b = x.at(k + q) * conjugate(roots.power(1, k - start));
            const Complex c = x.at(k + 2 * q) * conjugate(roots.power(2, k - start));
            const Complex d = x.at(k + 3 * q) * conjugate(roots.power(3, k - start));
            const Complex even = a + c, odd = a - c, pair = b + d, turned = times_i(b - d);
            x.set(k, even + pair);
            x.set(k + q, odd + turned);
            x.set(k + 2 * q, even - pair);
            x.set(k + 3 * q, odd - turned);
        }
}

// Where n / lanes is no power of four, two halves first. w^2k of twice the length is w^k.
void split_by_two(Signal x, int64_t n, const double* table) {
    const Roots roots(table, 2 * n);
    for (int64_t k = 0; k < n / 2; k += lanes) {
        const Complex a = x.at(k), b = x.at(k + n / 2);
        x.set(k, a + b);
        x.set(k + n / 2, (a - b) * roots.power(2, k));
    }
}

void join_two(Signal x, int64_t n, const double* table) {
    const Roots roots(table, 2 * n);
    for (int64_t k = 0; k < n / 2; k += lanes) {
        const Complex a = x.at(k), b = x.at(k + n / 2) * conjugate(roots.power(2, k));
        x.set(k, a + b);
        x.set(k + n / 2, a - b);
    }
}

// a times e^{-2 pi i eighth / 8}.
inline Complex by_eighths(Complex a, int eighth) {
    constexpr double half = 0.70710678118654752440;
    if (eighth == 1) return {half * (a.re + a.im), half * (a.im - a.re)};
    if (eighth == 2) return {a.im, -a.re};
    if (eighth == 3) return {half * (a.im - a.re), -half * (a.re + a.im)};
    return a;
}

// The transform of `size` registers, and back.
template <int size>
inline void split_registers(Complex* x) {
    for (int k = 0; k < size / 2; ++k) {
        const Complex a = x[k], b = x[k + size / 2];
        x[k] = a + b;
        x[k + size / 2] = by_eighths(a - b, 8 * k / size);
    }
    split_registers<size / 2>(x);
    split_registers<size / 2>(x + size / 2);
}
template <>
inline void split_registers<1>(Complex*) {}

template <int size>
inline void join_registers(Complex* x) {
    join_registers<size / 2>(x);
    join_registers<size / 2>(x + size / 2);
    for (int k = 0; k < size / 2; ++k) {
        const Complex a = x[k], b = conjugate(by_eighths(conjugate(x[k + size / 2]), 8 * k / size));
        x[k] = a + b;
        x[k + size / 2] = a - b;
    }
}
template <>
inline void join_registers<1>(Complex*) {}

#if KOFN_LANES == 8
#define KOFN_EACH_LANE(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#elif KOFN_LANES == 4
#define KOFN_EACH_LANE(f) f(0), f(1), f(2), f(3)
#else
#define KOFN_EACH_LANE(f) f(0), f(1)
#endif
#ifdef __clang__
#define KOFN_PICK(a, b, f) __builtin_shufflevector(a, b, KOFN_EACH_LANE(f))
#else
#define KOFN_PICK(a, b, f) __builtin_shuffle(a, b, Mask{KOFN_EACH_LANE(f)})
#endif

// Swaps the blocks of `h` lanes beside the diagonal of each pair of rows that are `h` apart: for h = 1, 2, 4 a
// transposition.
template <int h>
inline void swap_blocks(Lanes* rows) {
#define KOFN_LEFT(k) ((k) & h ? lanes + (k) - h : (k))
#define KOFN_RIGHT(k) ((k) & h ? lanes + (k) : (k) + h)
    for (int i = 0; i < lanes; ++i)
        if (!(i & h)) {
            const Lanes a = rows[i], b = rows[i + h];
            rows[i] = KOFN_PICK(a, b, KOFN_LEFT);
            rows[i + h] = KOFN_PICK(a, b, KOFN_RIGHT);
        }
#undef KOFN_LEFT
#undef KOFN_RIGHT
    if constexpr (2 * h < lanes) swap_blocks<2 * h>(rows);
}
#undef KOFN_PICK
#undef KOFN_EACH_LANE

// The last splits, inside blocks of `lanes`, the squares, and the first joins.
void square_blocks(Signal x, int64_t n) {
    for (int64_t start = 0; start < n; start += lanes * lanes) {
        Lanes re[lanes], im[lanes];
        Complex block[lanes];
        for (int k = 0; k < lanes; ++k) re[k] = load(x.re + start + k * lanes);
        for (int k = 0; k < lanes; ++k) im[k] = load(x.im + start + k * lanes);
        swap_blocks<1>(re);
        swap_blocks<1>(im);
        for (int k = 0; k < lanes; ++k) block[k] = {re[k], im[k]};
        split_registers<lanes>(block);
        for (int k = 0; k < lanes; ++k) block[k] = block[k] * block[k];
        join_registers<lanes>(block);
        for (int k = 0; k < lanes; ++k) re[k] = block[k].re, im[k] = block[k].im;
        swap_blocks<1>(re);
        swap_blocks<1>(im);
        for (int k = 0; k < lanes; ++k) x.set(start + k * lanes, {re[k], im[k]});
    }
}

// a + ib becomes n times its square, the cyclic convolution with itself: b holds 2n (a * b). n is a power of two, and
// no less than the square of the lanes.
void square(double* a, double* b, int64_t n, const double* table) {
    const Signal x{a, b};
    int64_t length = lanes, smallest = 4 * lanes;
    while (4 * length <= n) length *= 4;
    const bool halves = length < n;
    if (halves) split_by_two(x, n, table);
    for (int64_t now = length; now >= smallest; now /= 4) split_by_four(x, n, now, table);
    square_blocks(x, n);
    for (int64_t now = smallest; now <= length; now *= 4) join_four(x, n, now, table);
    if (halves) join_two(x, n, table);
}

}  // namespace
