// The C interface: checks what must hold, picks the kernels, and lets no exception out.
#include "kofn.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "class_counts.h"
#include "interval.h"
#include "large_bag.h"
#include "law.h"
#include "levels.h"
#include "parallel.h"
#include "shift.h"

namespace {

using kofn::Input;

bool sound(const Input& input, int dtype) {
    if ((dtype != KOFN_FLOAT32 && dtype != KOFN_FLOAT64) || input.b < 0) return false;
    if (!input.offsets) {
        if (input.n < 0 || (input.n > 0 && input.b > INT64_MAX / 16 / input.n)) return false;
    } else {
        if (input.offsets[0] != 0) return false;
        for (int64_t j = 0; j < input.b; ++j)
            if (input.size(j) < 0) return false;
    }
    return input.logits || input.start(input.b) == 0;
}

// Rough, in nanoseconds: only to tell calls that are worth a thread from those that are not.
double interval_work(const Input& input) { return 15.0 * static_cast<double>(input.start(input.b)); }

template <class Cost>
double law_work(const Input& input, Cost cost) {
    double total = 0.0;
    for (int64_t j = 0; j < input.b; ++j) total += cost(static_cast<double>(input.size(j)));
    return total;
}

double class_work(const kofn::ClassCall& call) {
    double total = 0.0;
    for (int64_t j = 0; j < call.input.b; ++j) {
        double states = 1.0, largest = 0.0;
        for (int64_t c = 0; c < call.classes; ++c) {
            const auto k = static_cast<double>(std::max<int64_t>(call.counts[j * call.classes + c], 0));
            states *= k + 1.0;
            largest = std::max(largest, k);
        }
        total += 4.0 * static_cast<double>(call.input.size(j)) * (static_cast<double>(call.classes) + states / (largest + 1.0));
    }
    return total;
}

template <class Number>
void scale_bags(const Input& bags, const void* scale, void* out) {
    const auto* from = static_cast<const Number*>(bags.logits);
    const auto* by = static_cast<const Number*>(scale);
    auto* to = static_cast<Number*>(out);
    for (int64_t j = 0; j < bags.b; ++j)
        for (int64_t i = bags.start(j); i < bags.start(j + 1); ++i) to[i] = from[i] * by[j];
}

template <class Number>
void weigh(const Input& bags, double weight, const void* value, void* total, void* slope) {
    double sum = 0.0;
    for (int64_t j = 0; j < bags.b; ++j) sum += static_cast<double>(static_cast<const Number*>(value)[j]);
    *static_cast<Number*>(total) = static_cast<Number>(weight * sum);
    auto* out = static_cast<Number*>(slope);
    const auto by = static_cast<Number>(weight);
    for (int64_t i = 0, m = slope ? bags.start(bags.b) : 0; i < m; ++i) out[i] *= by;
}

// Calls work(kernels) with those of this level.
template <class Work>
int with_kernels(int level, Work work) noexcept {
    const kofn::Kernels* kernels = kofn::kernels_of(level);
    if (!kernels) return KOFN_NO_SUCH_LEVEL;
    try {
        work(*kernels);
        return KOFN_OK;
    } catch (const std::bad_alloc&) {
        return KOFN_NO_MEMORY;
    } catch (...) {
        return KOFN_FAILED;
    }
}

template <class Solver, class Call>
int solve(const Call& call, double nanoseconds, int level, int threads) noexcept {
    return with_kernels(level, [&](const kofn::Kernels& kernels) {
        kofn::for_all_bags<Solver>(kernels, call, nanoseconds, threads, INT64_MAX);
    });
}

}  // namespace

int kofn_interval(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, const int64_t* low,
                  const int64_t* high, void* value, void* slope, double* posterior, int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || (b > 0 && (!low || !value)) || threads < 1) return KOFN_BAD_ARGUMENT;
    const kofn::IntervalCall call{input, low, high, value, {slope, posterior}};
    return with_kernels(level, [&](const kofn::Kernels& kernels) {
        kofn::for_all_bags<kofn::IntervalSolver>(kernels, call, interval_work(input), threads, kofn::largest_in_run);
        for (int64_t j = 0; j < b; ++j)
            if (input.size(j) > kofn::largest_in_run) kofn::LargeBag(kernels, call, j, threads).solve();
    });
}

int kofn_shared_interval(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, const int64_t* low,
                         const int64_t* high, void* value, void* slope, double* posterior, int64_t processes,
                         kofn_gather gather, int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || (b > 0 && (!low || !value)) || threads < 1) return KOFN_BAD_ARGUMENT;
    if (processes < 1 || !gather) return KOFN_BAD_ARGUMENT;
    const kofn::IntervalCall call{input, low, high, value, {slope, posterior}};
    return with_kernels(level, [&](const kofn::Kernels& kernels) {
        for (int64_t j = 0; j < b; ++j) kofn::LargeBag(kernels, call, j, threads, {processes, gather}).solve();
    });
}

int kofn_log_likelihood(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, const int64_t* low,
                        const int64_t* high, double weight, void* total, void* slope, int level, int threads) {
    if (!total) return KOFN_BAD_ARGUMENT;
    kofn::Buffer values;  // the log-probabilities that are summed, of either dtype
    try {
        values.reserve(b);
    } catch (const std::bad_alloc&) {
        return KOFN_NO_MEMORY;
    }
    const int code =
        kofn_interval(dtype, logits, offsets, n, b, low, high, values.data(), slope, nullptr, level, threads);
    if (code != KOFN_OK) return code;
    const Input bags{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (bags.wide)
        weigh<double>(bags, weight, values.data(), total, slope);
    else
        weigh<float>(bags, weight, values.data(), total, slope);
    return KOFN_OK;
}

int kofn_scale(int dtype, const void* slope, const int64_t* offsets, int64_t n, int64_t b, const void* scale, void* out) {
    const Input bags{dtype == KOFN_FLOAT64, slope, offsets, n, b};
    if (!sound(bags, dtype) || (bags.start(b) > 0 && (!scale || !out))) return KOFN_BAD_ARGUMENT;
    if (bags.wide)
        scale_bags<double>(bags, scale, out);
    else
        scale_bags<float>(bags, scale, out);
    return KOFN_OK;
}

int kofn_law(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, double* value, double* tilts,
             int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || (b > 0 && !value) || threads < 1) return KOFN_BAD_ARGUMENT;
    const kofn::LawCall call{input, value, tilts};
    const double work = law_work(input, [](double size) { return 10.0 * size * std::log2(size + 1.0); });
    return solve<kofn::LawSolver>(call, work, level, threads);
}

int kofn_law_gradient(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, const double* tilts,
                      const double* weights, double* gradient, int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || (b > 0 && (!tilts || !weights)) || threads < 1) return KOFN_BAD_ARGUMENT;
    if (!gradient && input.start(b) > 0) return KOFN_BAD_ARGUMENT;
    const kofn::LawGradientCall call{input, tilts, weights, gradient};
    const double work = law_work(input, [](double size) { return 8.0 * size * std::sqrt(size); });
    return solve<kofn::LawGradientSolver>(call, work, level, threads);
}

int kofn_shift_mode(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, const int64_t* counts,
                    const double* sigma, double* centre, int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || (b > 0 && (!counts || !sigma || !centre)) || threads < 1) return KOFN_BAD_ARGUMENT;
    const kofn::ShiftCall call{input, counts, sigma, centre, nullptr, nullptr, nullptr, nullptr};
    return solve<kofn::ShiftSolver>(call, 3.0 * interval_work(input), level, threads);
}

int kofn_shift(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, const int64_t* counts,
               const double* sigma, const double* centre, double* value, double* slope, double* by_sigma, int level,
               int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || (b > 0 && (!counts || !sigma || !centre || !value)) || threads < 1) return KOFN_BAD_ARGUMENT;
    if ((slope == nullptr) != (by_sigma == nullptr) && input.start(b) > 0) return KOFN_BAD_ARGUMENT;
    const kofn::ShiftCall call{input, counts, sigma, nullptr, centre, value, slope, by_sigma};
    return solve<kofn::ShiftSolver>(call, 6.0 * interval_work(input), level, threads);
}

int kofn_class_counts(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, int64_t classes,
                      const int64_t* counts, void* value, void* slope, double* posterior, int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || classes < 1 || (b > 0 && (!counts || !value)) || threads < 1) return KOFN_BAD_ARGUMENT;
    const kofn::ClassCall call{input, classes, counts, value, slope, posterior};
    return solve<kofn::ClassSolver>(call, class_work(call), level, threads);
}

int kofn_interface(void) { return KOFN_INTERFACE; }

int kofn_levels(void) { return kofn::levels(); }
