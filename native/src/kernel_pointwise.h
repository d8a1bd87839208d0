// Kernels that look at each instance once: conversions, sigmoids, sums. Only for the kernel units.
#pragma once

#include "kernel_lanes.h"
#include "kernels.h"

namespace {

using kofn::Moments;
using kofn::Range;

bool ordinary(const double* x, int64_t n) {
    const Lanes most = splat(kofn::largest_logit);
    Mask others{};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) others |= ~(abs(load(x + i)) <= most);  // so that a NaN is one of them
    bool all = true;
    for (; i < n; ++i) all &= x[i] >= -kofn::largest_logit && x[i] <= kofn::largest_logit;
    for (int k = 0; k < lanes; ++k) all &= others[k] == 0;
    return all;
}

bool widen(const float* x, int64_t n, double* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[i];
    return ordinary(out, n);
}

struct Odds {
    Lanes e;       // e^{-|x|}
    Lanes larger;  // 1 / (1 + e), the larger of p and q
    Lanes p, q;
};

// Both sides of the sigmoid to the last digit: neither is one minus the other.
inline Odds odds(Lanes x) {
    const Lanes e = exp_nonpositive(-abs(x));
    const Lanes larger = 1.0 / (1.0 + e), smaller = e * larger;
    const Mask positive = x >= 0.0;
    return {e, larger, positive ? larger : smaller, positive ? smaller : larger};
}

// Of z + t.
void sigmoid(const double* z, int64_t n, double t, double* p, double* q) {
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Odds o = odds(load(z + i) + t);
        store(p + i, o.p);
        store(q + i, o.q);
    }
    const Odds o = odds(load_some(z + i, n - i, 0.0) + t);
    store_some(p + i, n - i, o.p);
    store_some(q + i, n - i, o.q);
}

void log_all(double* x, int64_t n) {
    for (int64_t i = 0; i < n; i += lanes) store_some(x + i, n - i, log_positive(load_some(x + i, n - i, 1.0)));
}

void exp_all(double* x, int64_t n) {
    for (int64_t i = 0; i < n; i += lanes) store_some(x + i, n - i, exp_nonpositive(load_some(x + i, n - i, 0.0)));
}

// With copies c of each row, or null: one.
inline Lanes copies_of(const double* c, int64_t i, int64_t n) { return c ? load_some(c + i, n - i, 0.0) : splat(1.0); }

double log_sigmoid(const double* z, const double* c, int64_t n, double sign) {
    // log sigmoid(x) = min(x, 0) - log(1 + e^{-|x|}), each term right to the last digit: so is a bag of one.
    Lanes total{};
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes x = sign * load_some(z + i, n - i, sign * 1e4);  // a filler of log sigmoid(1e4) = 0
        total += copies_of(c, i, n) * (min(x, Lanes{}) - log1p(exp_nonpositive(-abs(x))));
    }
    return sum(total);
}

double sum_abs(const double* z, int64_t n) {
    Lanes total{};
    for (int64_t i = 0; i < n; i += lanes) total += abs(load_some(z + i, n - i, 0.0));
    return sum(total);
}

Range range(const double* z, int64_t n) {
    Lanes low = splat(z[0]), high = low;
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes v = load_some(z + i, n - i, z[0]);
        low = min(low, v);
        high = max(high, v);
    }
    return {-largest(-low), largest(high)};
}

Moments moments(const double* p, const double* q, const double* c, int64_t n) {
    Lanes mean{}, variance{}, widest{};
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes a = load_some(p + i, n - i, 0.0), b = load_some(q + i, n - i, 1.0), product = a * b;
        const Lanes people = copies_of(c, i, n);
        mean += people * a;
        variance += people * product;
        widest = max(widest, product);
    }
    return {sum(mean), sum(variance), largest(widest), 0.0, 0.0, 0.0, 0.0};
}

// The bag under the tilt t: p and q of x = z + t, their moments, and what leads back from the tilted distribution
// (Tilted::back). 1 / (1 + e^{-|z|}) is the larger of p0 and q0. The factors whose logarithms are wanted lie between
// 1/2 and 2: hundreds are multiplied before a logarithm is taken.
Moments tilt(const double* z, const double* p0, const double* q0, int64_t n, double t, double* p, double* q) {
    constexpr int64_t block = 512 * lanes;
    Lanes mean{}, variance{}, widest{}, above{}, logs{};
    Exact<Lanes> cost;
    for (int64_t start = 0; start < n; start += block) {
        const int64_t stop = start + block < n ? start + block : n;
        Lanes factors = splat(1.0), block_mean{}, block_variance{};
        for (int64_t i = start; i < stop; i += lanes) {
            const int64_t left = n - i;
            const Lanes before = load_some(z + i, left, -1e300);  // fillers: p = 0, factor 1, no cost
            const Lanes x = before + t;
            const Odds o = odds(x);
            store_some(p + i, left, o.p);
            store_some(q + i, left, o.q);
            const Lanes product = o.p * o.q;
            block_mean += o.p;
            block_variance += product;
            widest = max(widest, product);
            const Mask positive = x > 0.0;
            above += positive ? splat(1.0) : Lanes{};
            cost.add(max(positive ? -before : before, Lanes{}));
            factors *= (1.0 + o.e) * max(load_some(p0 + i, left, 0.0), load_some(q0 + i, left, 1.0));
        }
        mean += block_mean;
        variance += block_variance;
        logs += log_positive(factors);
    }
    const Exact<double> total = sum(cost);
    return {sum(mean), sum(variance), largest(widest), sum(above), total.high, total.low, sum(logs)};
}

// The same for rows that stand for `copies` people each. With so many, every logarithm has to be right to its own last
// digit: with m = min(p, q) and d = |x| - |z|, the one wanted of a row is log(1 + m (e^{-d} - 1)), with m of z where d
// > 0 and, with the opposite signs of both, of x where it is not. d is +-t where x and z have the same sign.
Moments tilt_copies(const double* z, const double* p0, const double* q0, const double* c, int64_t n, double t,
                    double* p, double* q) {
    Lanes mean{}, variance{}, widest{}, above{}, logs{};
    Exact<Lanes> cost;
    for (int64_t i = 0; i < n; i += lanes) {
        const int64_t left = n - i;
        const Lanes before = load_some(z + i, left, -1e300), people = load_some(c + i, left, 0.0), x = before + t;
        const Odds o = odds(x);
        store_some(p + i, left, o.p);
        store_some(q + i, left, o.q);
        const Lanes product = o.p * o.q;
        mean += people * o.p;
        variance += people * product;
        widest = max(widest, product);
        const Mask positive = x > 0.0, was = before > 0.0, same = ~(positive ^ was);
        above += positive ? people : Lanes{};
        const Lanes d = same ? (was ? splat(t) : splat(-t)) : __builtin_fabs(t) - 2.0 * abs(before);
        const Lanes smaller = d > 0.0 ? min(load_some(p0 + i, left, 0.0), load_some(q0 + i, left, 1.0)) : min(o.p, o.q);
        const Lanes term = log1p(smaller * expm1_nonpositive(-abs(d)));
        logs += people * (d > 0.0 ? term : -term);
        // Copies times the first half of the digits of |z| are exact.
        const Lanes size = same ? Lanes{} : abs(before), high = (Lanes)((Bits)size & (Bits{} + ~UINT64_C(0x7ffffff)));
        cost.add(people * high);
        cost.add(people * (size - high));
    }
    const Exact<double> total = sum(cost);
    return {sum(mean), sum(variance), largest(widest), sum(above), total.high, total.low, sum(logs)};
}

inline double clamped(double x) {
    x = x < 1.0 ? x : 1.0;
    return x > 0.0 ? x : 0.0;
}

void clamp(const double* posterior, int64_t n, double* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = clamped(posterior[i]);
}

template <class Number>
void gradient(const double* posterior, const double* prior, int64_t n, double weight, Number* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Number>(weight * (clamped(posterior[i]) - prior[i]));
}

}  // namespace
