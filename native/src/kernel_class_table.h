// Class counts by recursion over the instances (class_counts.h). Only for the kernel units.
//
// A table holds the probabilities of all (j_1, .., j_{c-1}) with j <= k after some instances, numbered by mixed radix
// with strides of its own for each class; class 0 has no digit. One more instance makes
//
//     a'(s) = p_0 a(s) + sum_c p_c a(s - stride_c)    where digit c of s is not 0,
//
// which is a sum of runs: for class c, stretches of stride_c k_c numbers in every stride_c (k_c + 1). Backward, with
// b(s) the probability of coming from s to k,
//
//     b(s) = p_0 b'(s) + sum_c p_c b'(s + stride_c),     P(y = c, K = k) = p_c sum_s a(s) b'(s + stride_c).
//
// Every term is positive. A number is a float64, or a vector with one bag in each lane.
#pragma once

#include "kernel_lanes.h"
#include "kernels.h"

namespace {

using kofn::ClassTable;

inline void add_run(double* __restrict to, const double* __restrict from, double a, int64_t number) {
    for (int64_t k = 0; k < number; ++k) to[k] += a * from[k];
}

inline void add_run(Lanes* __restrict to, const Lanes* __restrict from, Lanes a, int64_t number) {
    for (int64_t k = 0; k < number; ++k) to[k] += a * from[k];
}

// sum a b, and b times p added to `to`.
inline double pull_run(const double* a, const double* __restrict b, double p, double* __restrict to, int64_t number) {
    Lanes first{}, second{};
    int64_t k = 0;
    for (; k + 2 * lanes <= number; k += 2 * lanes) {
        const Lanes b0 = load(b + k), b1 = load(b + k + lanes);
        first += load(a + k) * b0;
        second += load(a + k + lanes) * b1;
        store(to + k, load(to + k) + p * b0);
        store(to + k + lanes, load(to + k + lanes) + p * b1);
    }
    double rest = 0.0;
    for (; k < number; ++k) {
        rest += a[k] * b[k];
        to[k] += p * b[k];
    }
    return rest + sum(first + second);
}

inline Lanes pull_run(const Lanes* a, const Lanes* __restrict b, Lanes p, Lanes* __restrict to, int64_t number) {
    Lanes total{};
    for (int64_t k = 0; k < number; ++k) {
        total += a[k] * b[k];
        to[k] += p * b[k];
    }
    return total;
}

template <class Number>
inline void advance(const ClassTable& table, const Number* p, const Number* __restrict from, Number* __restrict to) {
    for (int64_t s = 0; s < table.states; ++s) to[s] = p[0] * from[s];
    for (int64_t c = 1; c < table.classes; ++c) {
        const int64_t stride = table.stride[c], run = stride * table.count[c], period = run + stride;
        for (int64_t s = 0; s < table.states; s += period) add_run(to + s + stride, from + s, p[c], run);
    }
}

template <class Number>
inline void step_back(const ClassTable& table, const Number* p, const Number* ahead, const Number* __restrict from,
                      Number* __restrict to, Number* joint) {
    for (int64_t s = 0; s < table.states; ++s) to[s] = Number{};
    joint[0] = p[0] * pull_run(ahead, from, p[0], to, table.states);
    for (int64_t c = 1; c < table.classes; ++c) {
        const int64_t stride = table.stride[c], run = stride * table.count[c], period = run + stride;
        Number total{};
        for (int64_t s = 0; s < table.states; s += period)
            total += pull_run(ahead + s, from + s + stride, p[c], to + s, run);
        joint[c] = p[c] * total;
    }
}

// Tables of the instances are kept where a stretch of them begins; those inside are made again on the way back.
template <class Number>
void class_table(const ClassTable& table, const Number* p, Number* total, Number* joint, Number* work) {
    const int64_t n = table.size, states = table.states, stretch = table.stretch, classes = table.classes;
    Number* kept = work;
    Number* tables =
        kept + kofn::class_stretches(n, stretch) * states;  // before each instance of a stretch, and after it
    const auto forward = [&](int64_t j) {
        const int64_t first = j * stretch, last = first + stretch < n ? first + stretch : n;
        for (int64_t s = 0; s < states; ++s) tables[s] = kept[j * states + s];
        for (int64_t i = first; i < last; ++i)
            advance(table, p + i * classes, tables + (i - first) * states, tables + (i - first + 1) * states);
        return tables + (last - first) * states;
    };
    for (int64_t s = 0; s < states; ++s) kept[s] = Number{};
    kept[0] = Number{} + 1.0;
    const int64_t stretches = kofn::class_stretches(n, stretch);
    for (int64_t j = 0; j < stretches; ++j) {
        const Number* end = forward(j);
        if (j + 1 < stretches)
            for (int64_t s = 0; s < states; ++s) kept[(j + 1) * states + s] = end[s];
        else
            *total = end[states - 1];
    }
    if (!joint) return;
    Number* back = tables + (stretch + 1) * states;
    Number* next = back + states;
    for (int64_t s = 0; s < states; ++s) back[s] = Number{};
    back[states - 1] = Number{} + 1.0;
    for (int64_t j = stretches - 1; j >= 0; --j) {
        const int64_t first = j * stretch, last = first + stretch < n ? first + stretch : n;
        if (j + 1 < stretches) forward(j);  // the last are still there
        for (int64_t i = last - 1; i >= first; --i) {
            step_back(table, p + i * classes, tables + (i - first) * states, back, next, joint + i * classes);
            Number* swapped = back;
            back = next;
            next = swapped;
        }
    }
}

void class_table_one(const ClassTable& table, const double* p, double* total, double* joint, double* work) {
    class_table<double>(table, p, total, joint, work);
}

void class_table_many(const ClassTable& table, const double* p, double* total, double* joint, double* work) {
    class_table<Lanes>(table, reinterpret_cast<const Lanes*>(p), reinterpret_cast<Lanes*>(total),
                       reinterpret_cast<Lanes*>(joint), reinterpret_cast<Lanes*>(work));
}

}  // namespace
