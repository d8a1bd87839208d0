// A bag under many common shifts v of its logits at once. Only for the kernel units.
#pragma once

#include "kernel_lanes.h"

namespace {

// sum_i log(large_i + small_i e_k) of each shift, a vector of shifts at a time. Of `stretch` factors the product does not
// underflow or overflow. The number of shifts is a multiple of the lanes.
void shift_logs(const double* large, const double* small, int64_t n, const double* e, int64_t shifts, int64_t stretch,
                double* out) {
    for (int64_t k = 0; k < shifts; k += lanes) {
        const Lanes by = load(e + k);
        Lanes total{};
        for (int64_t start = 0; start < n; start += stretch) {
            const int64_t stop = start + stretch < n ? start + stretch : n;
            Lanes even = splat(1.0), odd = even;  // two products, because a multiplication takes a few cycles
            int64_t i = start;
            for (; i + 2 <= stop; i += 2) {
                even *= large[i] + small[i] * by;
                odd *= large[i + 1] + small[i + 1] * by;
            }
            if (i < stop) even *= large[i] + small[i] * by;
            total += log_positive(even) + log_positive(odd);
        }
        store(out + k, total);
    }
}

// Each shift v is a pair (a, b): (1, e^v) for v <= 0 and (e^-v, 1) for v > 0, so that q a + p b is at most one.
// With r_ik = p_i b_k / (q_i a_k + p_i b_k), the probability of an instance under a shift: out_i = sum_k w_k r_ik, and
// returned, sum_ik v_k r_ik.
double shift_means(const double* p, const double* q, int64_t n, const double* a, const double* b, const double* w,
                   const double* v, int64_t shifts, double* out) {
    Lanes total{};
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes one = load_some(p + i, n - i, 0.0), none = load_some(q + i, n - i, 1.0);
        Lanes mean{};
        for (int64_t k = 0; k < shifts; ++k) {
            const Lanes up = one * b[k], r = up / (none * a[k] + up);
            mean += w[k] * r;
            total += v[k] * r;
        }
        store_some(out + i, n - i, mean);
    }
    return sum(total);
}

}  // namespace
