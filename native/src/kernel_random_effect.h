// A bag under many common shifts v of its logits at once. Only for the kernel units.
#pragma once

#include "kernel_lanes.h"
#include "kernel_pointwise.h"

namespace {

// The functions of a shift v that the others ask for: (a, b) is (1, e^v) for v <= 0 and (e^-v, 1) for v > 0; up is e^v
// - 1, down e^-v - 1. The number of shifts is here and everywhere below a multiple of the lanes.
void effect_nodes(const double* zeta, double sigma, int64_t nodes, double* a, double* b, double* up, double* down) {
    for (int64_t k = 0; k < nodes; k += lanes) {
        const Lanes v = sigma * load(zeta + k), small = exp_nonpositive(-abs(v));
        const Lanes fall = expm1_nonpositive(-abs(v)), rise = -fall / small;
        const Mask positive = v > 0.0;
        store(a + k, positive ? small : splat(1.0));
        store(b + k, positive ? splat(1.0) : small);
        store(up + k, positive ? rise : fall);
        store(down + k, positive ? fall : rise);
    }
}

// sum_i log(q_i + p_i e^v), less v for each i that is more likely a one, of `width` vectors of shifts: factors are 1 +
// m (e^{+-v}
// - 1), m = min(p_i, q_i), and what is nearly sure gives nearly 1. Of `stretch` of them the product does not underflow
// or overflow. With copies c of rows, logarithms are summed.
template <int width>
inline void effect_logs(const double* p, const double* q, const double* c, int64_t n, const double* up,
                        const double* down, int64_t stretch, Lanes* total) {
    const auto factor = [&](int64_t i, int g) {  // a choice of address, not of a way to go: signs follow no pattern
        const bool one = p[i] > q[i];
        return (one ? q[i] : p[i]) * load((one ? down : up) + g * lanes);
    };
    for (int g = 0; g < width; ++g) total[g] = Lanes{};
    for (int64_t i = 0; c && i < n; ++i)
        for (int g = 0; g < width; ++g) total[g] += c[i] * log1p(factor(i, g));
    for (int64_t start = 0; !c && start < n; start += stretch) {
        const int64_t stop = start + stretch < n ? start + stretch : n;
        Lanes product[width];
        for (int g = 0; g < width; ++g) product[g] = splat(1.0);
        for (int64_t i = start; i < stop; ++i)
            for (int g = 0; g < width; ++g) product[g] += product[g] * factor(i, g);
        for (int g = 0; g < width; ++g) total[g] += log_positive(product[g]);
    }
}

// The logarithm of the integrand at each zeta: zeta slope - zeta^2 / 2 less those logarithms.
template <int width>
inline void effect_terms_of(const double* p, const double* q, const double* c, int64_t n, const double* zeta,
                            double slope, const double* up, const double* down, int64_t stretch, double* out) {
    Lanes logs[width];
    effect_logs<width>(p, q, c, n, up, down, stretch, logs);
    for (int g = 0; g < width; ++g) {
        const Lanes at = load(zeta + g * lanes);
        store(out + g * lanes, at * (slope - 0.5 * at) - logs[g]);
    }
}

void effect_terms(const double* p, const double* q, const double* c, int64_t n, const double* zeta, double slope,
                  const double* up, const double* down, int64_t nodes, int64_t stretch, double* out) {
    int64_t k = 0;
    for (; k + 3 * lanes <= nodes; k += 3 * lanes)
        effect_terms_of<3>(p, q, c, n, zeta + k, slope, up + k, down + k, stretch, out + k);
    for (; k < nodes; k += lanes) effect_terms_of<1>(p, q, c, n, zeta + k, slope, up + k, down + k, stretch, out + k);
}

// terms become weights e^terms / sum of weights e^terms. Returns the logarithm of that sum.
double effect_weights(double* terms, const double* weights, int64_t nodes) {
    Lanes top = load(terms), total{};
    for (int64_t k = lanes; k < nodes; k += lanes) top = max(top, load(terms + k));
    const double highest = largest(top);
    for (int64_t k = 0; k < nodes; k += lanes) {
        const Lanes term = load(weights + k) * exp_nonpositive(load(terms + k) - highest);
        store(terms + k, term);
        total += term;
    }
    const double all = sum(total), scale = 1.0 / all;
    for (int64_t k = 0; k < nodes; k += lanes) store(terms + k, scale * load(terms + k));
    return highest + log_positive(splat(all))[0];
}

// With r_ik = p_i b_k / (q_i a_k + p_i b_k), the probability of an instance under a shift, where q a + p b is at most
// one: out_i = sum_k w_k r_ik, and
// returned, sum_ik c_i v_k r_ik.
double effect_means(const double* p, const double* q, const double* c, int64_t n, const double* a, const double* b,
                    const double* w, const double* v, int64_t shifts, double* out) {
    Lanes total{};
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes one = load_some(p + i, n - i, 0.0), none = load_some(q + i, n - i, 1.0);
        Lanes mean{}, leaning{};
        int64_t k = 0;
        for (; k + 2 <= shifts; k += 2) {  // one division for two: where v is near, no product underflows
            const Lanes up0 = one * b[k], up1 = one * b[k + 1], all0 = none * a[k] + up0, all1 = none * a[k + 1] + up1;
            const Lanes by = 1.0 / (all0 * all1), r0 = up0 * (all1 * by), r1 = up1 * (all0 * by);
            mean += w[k] * r0 + w[k + 1] * r1;
            leaning += v[k] * r0 + v[k + 1] * r1;
        }
        if (k < shifts) {
            const Lanes up = one * b[k], r = up / (none * a[k] + up);
            mean += w[k] * r;
            leaning += v[k] * r;
        }
        total += copies_of(c, i, n) * leaning;
        store_some(out + i, n - i, mean);
    }
    return sum(total);
}

}  // namespace
