// A bag under many common shifts v of its logits at once. Only for the kernel units.
#pragma once

#include "kernel_lanes.h"
#include "kernel_pointwise.h"

namespace {

// sum_i log(q_i + p_i e^v), less v for each i that is more likely a one, of each shift; up is e^v - 1, down e^-v - 1. So the
// factors are 1 + m (e^{+-v} - 1), m = min(p_i, q_i): what is nearly sure gives nearly 1. Of `stretch` factors the product does
// not underflow or overflow. With copies c of rows, logarithms are summed. The number of shifts is a multiple of the lanes.
void effect_logs(const double* p, const double* q, const double* c, int64_t n, const double* up, const double* down,
                 int64_t shifts, int64_t stretch, double* out) {
    for (int64_t k = 0; k < shifts; k += lanes) {
        const auto smaller = [&](int64_t i) {  // a choice of address, not of a way to go: signs follow no pattern
            const bool one = p[i] > q[i];
            return (one ? q[i] : p[i]) * load((one ? down : up) + k);
        };
        Lanes total{};
        for (int64_t i = 0; c && i < n; ++i) total += c[i] * log1p(smaller(i));
        for (int64_t start = 0; !c && start < n; start += stretch) {
            const int64_t stop = start + stretch < n ? start + stretch : n;
            Lanes even = splat(1.0), odd = even;  // two products, because a multiplication takes a few cycles
            int64_t i = start;
            for (; i + 2 <= stop; i += 2) {
                even += even * smaller(i);
                odd += odd * smaller(i + 1);
            }
            if (i < stop) even += even * smaller(i);
            total += log_positive(even) + log_positive(odd);
        }
        store(out + k, total);
    }
}

// Each shift v is a pair (a, b): (1, e^v) for v <= 0 and (e^-v, 1) for v > 0, so that q a + p b is at most one.
// With r_ik = p_i b_k / (q_i a_k + p_i b_k), the probability of an instance under a shift: out_i = sum_k w_k r_ik, and
// returned, sum_ik c_i v_k r_ik.
double effect_means(const double* p, const double* q, const double* c, int64_t n, const double* a, const double* b,
                    const double* w, const double* v, int64_t shifts, double* out) {
    Lanes total{};
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes one = load_some(p + i, n - i, 0.0), none = load_some(q + i, n - i, 1.0);
        Lanes mean{}, leaning{};
        for (int64_t k = 0; k < shifts; ++k) {
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
