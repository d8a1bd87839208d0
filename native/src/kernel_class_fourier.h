// Class counts through their characteristic function phi(u) = prod_i w_i(u), w_i = sum_c p_ic e^{i u_c} (class_grid.h).
// Only for the kernel units.
//
//     P(K = k) = Re sum_u g(u) phi(u),      P(y_i = c, K = k) = p_ic Re sum_u g(u) e^{i u_c} prod_{j != i} w_j(u).
//
// The product without i is that of the instances before i times that of those after it: nothing is divided by a w_i, which
// may be zero. Two vectors of frequencies at a time go through all instances and back.
#pragma once

#include "kernel_lanes.h"
#include "kernels.h"

namespace {

using kofn::ClassFrequencies;

struct Complex {
    Lanes re, im;
};

inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

template <int classes>
struct Phases {
    Complex e[classes - 1];  // e^{i u_c}, c > 0; class 0 has none

    Phases(const ClassFrequencies& frequencies, int64_t m) {
        for (int c = 0; c + 1 < classes; ++c)
            e[c] = {load(frequencies.cosine + c * frequencies.number + m), load(frequencies.sine + c * frequencies.number + m)};
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

template <int classes>
double class_fourier_of(const double* p, int64_t n, const ClassFrequencies& frequencies, double* joint, double* work) {
    Complex* before = reinterpret_cast<Complex*>(work);  // 2 n
    Lanes* shares = reinterpret_cast<Lanes*>(before + 2 * n);
    if (joint)
        for (int64_t k = 0; k < n * classes; ++k) shares[k] = Lanes{};
    Lanes total{};
    for (int64_t m = 0; m < frequencies.number; m += 2 * lanes) {
        const Phases<classes> left(frequencies, m), right(frequencies, m + lanes);
        Complex a = {splat(1.0), Lanes{}}, b = a;
        for (int64_t i = 0; i < n; ++i) {
            before[2 * i] = a;
            before[2 * i + 1] = b;
            a = a * left.factor(p + i * classes);
            b = b * right.factor(p + i * classes);
        }
        Complex g = {load(frequencies.re + m), load(frequencies.im + m)};
        Complex h = {load(frequencies.re + m + lanes), load(frequencies.im + m + lanes)};
        total += (g * a).re + (h * b).re;
        if (!joint) continue;
        for (int64_t i = n - 1; i >= 0; --i) {
            const Complex x = before[2 * i] * g, y = before[2 * i + 1] * h;
            Lanes* share = shares + i * classes;
            share[0] += x.re + y.re;
            for (int c = 0; c + 1 < classes; ++c)
                share[c + 1] += (x.re * left.e[c].re - x.im * left.e[c].im) + (y.re * right.e[c].re - y.im * right.e[c].im);
            g = g * left.factor(p + i * classes);
            h = h * right.factor(p + i * classes);
        }
    }
    if (joint)
        for (int64_t k = 0; k < n * classes; ++k) joint[k] = p[k] * sum(shares[k]);
    return sum(total);
}

double class_fourier(const double* p, int64_t n, int64_t classes, const ClassFrequencies& frequencies, double* joint,
                     double* work) {
    switch (classes) {
        case 2: return class_fourier_of<2>(p, n, frequencies, joint, work);
        case 3: return class_fourier_of<3>(p, n, frequencies, joint, work);
        case 4: return class_fourier_of<4>(p, n, frequencies, joint, work);
        default: return class_fourier_of<5>(p, n, frequencies, joint, work);
    }
}

}  // namespace
