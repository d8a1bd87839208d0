// Class counts through their characteristic function phi(u) = prod_i w_i(u), w_i = sum_c p_ic e^{i u_c} (class_grid.h).
// Only for the kernel units.
//
//     P(K = k) = Re sum_u g(u) phi(u),      P(y_i = c, K = k) = p_ic Re sum_u g(u) e^{i u_c} prod_{j != i} w_j(u).
//
// The product without i is that of the instances before i times that of those after it: nothing is divided by a w_i,
// which may be zero.
#pragma once

#include "kernel_lanes.h"
#include "kernels.h"

namespace {

using kofn::ClassFrequencies;

template <int classes>
struct Phases {
    Complex e[classes - 1];  // e^{i u_c}, c > 0; class 0 has none

    Phases(const ClassFrequencies& frequencies, int64_t m) {
        for (int c = 0; c + 1 < classes; ++c)
            e[c] = {load(frequencies.cosine + c * frequencies.number + m),
                    load(frequencies.sine + c * frequencies.number + m)};
    }
    Complex factor(const double* p) const {
        Complex w = {splat(p[0]), Lanes{}};
        for (int c = 0; c + 1 < classes; ++c) {
            w.re += p[c + 1] * e[c].re;
            w.im += p[c + 1] * e[c].im;
        }
        return w;
    }
};

// A block of instances at a time goes through all frequencies, so that what is kept of it stays in the cache: first
// those before the last block, for the products where blocks begin; then all blocks from the last to the first.
template <int classes>
double class_fourier_of(const double* p, int64_t n, const ClassFrequencies& frequencies, double* joint, double* work) {
    const int64_t blocks = kofn::class_blocks(n), room = kofn::class_block(n), vectors = frequencies.number / lanes;
    Complex* before = reinterpret_cast<Complex*>(work);           // 2 for each instance of a block
    Lanes* shares = reinterpret_cast<Lanes*>(before + 2 * room);  // of its instances and classes
    Complex* ahead =
        reinterpret_cast<Complex*>(shares + room * classes);  // g times the blocks to come, for each vector
    Complex* starts = ahead + vectors;                        // products where a block begins
    for (int64_t v = 0; v < vectors; ++v) {
        ahead[v] = {load(frequencies.re + v * lanes), load(frequencies.im + v * lanes)};
        starts[v] = {splat(1.0), Lanes{}};
    }
    for (int64_t v = 0; v < vectors; v += 2) {
        const Phases<classes> left(frequencies, v * lanes), right(frequencies, (v + 1) * lanes);
        Complex a = starts[v], b = starts[v + 1];
        for (int64_t block = 0; block + 1 < blocks; ++block) {
            for (int64_t i = block * room; i < (block + 1) * room; ++i) {
                a = a * left.factor(p + i * classes);
                b = b * right.factor(p + i * classes);
            }
            starts[(block + 1) * vectors + v] = a;
            starts[(block + 1) * vectors + v + 1] = b;
        }
    }
    Lanes total{};
    for (int64_t block = blocks - 1; block >= 0; --block) {
        const int64_t first = block * room, number = n - first < room ? n - first : room;
        const double* own = p + first * classes;
        for (int64_t k = 0; k < number * classes; ++k) shares[k] = Lanes{};
        for (int64_t v = 0; v < vectors; v += 2) {
            const Phases<classes> left(frequencies, v * lanes), right(frequencies, (v + 1) * lanes);
            Complex a = starts[block * vectors + v], b = starts[block * vectors + v + 1];
            for (int64_t i = 0; i < number; ++i) {
                before[2 * i] = a;
                before[2 * i + 1] = b;
                a = a * left.factor(own + i * classes);
                b = b * right.factor(own + i * classes);
            }
            Complex g = ahead[v], h = ahead[v + 1];
            if (block + 1 == blocks) total += (g * a).re + (h * b).re;
            if (!joint) continue;
            for (int64_t i = number - 1; i >= 0; --i) {
                const Complex x = before[2 * i] * g, y = before[2 * i + 1] * h;
                Lanes* share = shares + i * classes;
                share[0] += x.re + y.re;
                for (int c = 0; c + 1 < classes; ++c)
                    share[c + 1] +=
                        (x.re * left.e[c].re - x.im * left.e[c].im) + (y.re * right.e[c].re - y.im * right.e[c].im);
                g = g * left.factor(own + i * classes);
                h = h * right.factor(own + i * classes);
            }
            ahead[v] = g;
            ahead[v + 1] = h;
        }
        if (!joint) break;
        for (int64_t k = 0; k < number * classes; ++k) joint[first * classes + k] = own[k] * sum(shares[k]);
    }
    return sum(total);
}

double class_fourier(const double* p, int64_t n, int64_t classes, const ClassFrequencies& frequencies, double* joint,
                     double* work) {
    switch (classes) {
        case 2:
            return class_fourier_of<2>(p, n, frequencies, joint, work);
        case 3:
            return class_fourier_of<3>(p, n, frequencies, joint, work);
        case 4:
            return class_fourier_of<4>(p, n, frequencies, joint, work);
        default:
            return class_fourier_of<5>(p, n, frequencies, joint, work);
    }
}

}  // namespace
