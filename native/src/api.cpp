// The C interface: checks what must hold, picks the kernels, and lets no exception out.
#include "kofn.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "all_counts.h"
#include "class_counts.h"
#include "event.h"
#include "large_bag.h"
#include "levels.h"
#include "parallel.h"

namespace {

using kofn::Input;

constexpr int64_t most_people = int64_t{1} << 40;  // in a bag: as many as float64 counts exactly times a frequency

bool sound(const Input& input, int dtype) {
    if ((dtype != KOFN_FLOAT32 && dtype != KOFN_FLOAT64) || input.b < 0) return false;
    if (!input.offsets) {
        if (input.n < 0 || (input.n > 0 && input.b > INT64_MAX / 16 / input.n)) return false;
    } else {
        if (input.offsets[0] != 0) return false;
        for (int64_t j = 0; j < input.b; ++j)
            if (input.size(j) < 0) return false;
    }
    const int64_t rows = input.start(input.b);
    for (int64_t j = 0, people = 0, i = 0; input.copies && j < input.b; ++j, people = 0)
        for (; i < input.start(j + 1); ++i) {
            if (input.copies[i] < 0 || input.copies[i] > most_people - people) return false;
            people += input.copies[i];
        }
    return input.logits || rows == 0;
}

// Rough, in nanoseconds: only to tell calls that are worth a thread from those that are not.
double event_work(const Input& input) { return 15.0 * static_cast<double>(input.start(input.b)); }

template <class Cost>
double all_counts_work(const Input& input, Cost cost) {
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
        total += 4.0 * static_cast<double>(call.input.size(j)) *
                 (static_cast<double>(call.classes) + states / (largest + 1.0));
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

int kofn_event(int dtype, const void* logits, const int64_t* copies, const int64_t* offsets, int64_t n, int64_t b,
               const int64_t* low, const int64_t* high, const double* sigma, double weight, void* total, void* value,
               void* gradient, double* by_sigma, double* posterior, int level, int threads) {
    std::atomic<bool> large{false};
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b, copies, &large};
    if (!sound(input, dtype) || (b > 0 && (!low || !(value || total))) || threads < 1) return KOFN_BAD_ARGUMENT;
    if (by_sigma && !sigma) return KOFN_BAD_ARGUMENT;
    for (int64_t j = 0; sigma && j < b; ++j)
        if (!(sigma[j] >= 0.0 && sigma[j] <= 1e300) || (high && high[j] != low[j])) return KOFN_BAD_ARGUMENT;
    const int code = with_kernels(level, [&](const kofn::Kernels& kernels) {
        kofn::Buffer sums;
        const kofn::EventCall call{
            input,    low,      high,     sigma, total ? weight : 1.0, value, total ? sums.reserve(b) : nullptr,
            gradient, by_sigma, posterior};
        const int64_t largest = copies || sigma ? INT64_MAX : kofn::largest_in_run;
        kofn::for_all_bags<kofn::EventSolver>(kernels, call, (sigma ? 5.0 : 1.0) * event_work(input), threads, largest);
        for (int64_t j = 0; j < b; ++j)
            if (input.size(j) > largest) kofn::LargeBag(kernels, call, j, threads).solve();
        if (!total) return;
        double sum = 0.0;
        for (int64_t j = 0; j < b; ++j) sum += call.sums[j];
        if (input.wide)
            *static_cast<double*>(total) = weight * sum;
        else
            *static_cast<float*>(total) = static_cast<float>(weight * sum);
    });
    return code == KOFN_OK && large ? KOFN_LARGE_LOGITS : code;
}

int kofn_shared_event(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, const int64_t* low,
                      const int64_t* high, void* value, void* gradient, double* posterior, int64_t processes,
                      kofn_gather gather, int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || (b > 0 && (!low || !value)) || threads < 1) return KOFN_BAD_ARGUMENT;
    if (processes < 1 || !gather) return KOFN_BAD_ARGUMENT;
    const kofn::EventCall call{input, low, high, nullptr, 1.0, value, nullptr, gradient, nullptr, posterior};
    return with_kernels(level, [&](const kofn::Kernels& kernels) {
        for (int64_t j = 0; j < b; ++j) kofn::LargeBag(kernels, call, j, threads, {processes, gather}).solve();
    });
}

int kofn_scale(int dtype, const void* gradient, const int64_t* offsets, int64_t n, int64_t b, const void* scale,
               void* out) {
    const Input bags{dtype == KOFN_FLOAT64, gradient, offsets, n, b};
    if (!sound(bags, dtype) || (bags.start(b) > 0 && (!scale || !out))) return KOFN_BAD_ARGUMENT;
    if (bags.wide)
        scale_bags<double>(bags, scale, out);
    else
        scale_bags<float>(bags, scale, out);
    return KOFN_OK;
}

int kofn_all_counts(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, double* value,
                    double* tilts, int level, int threads) {
    std::atomic<bool> large{false};
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b, nullptr, &large};
    if (!sound(input, dtype) || (b > 0 && !value) || threads < 1) return KOFN_BAD_ARGUMENT;
    const kofn::AllCountsCall call{input, value, tilts};
    const double work = all_counts_work(input, [](double size) { return 10.0 * size * std::log2(size + 1.0); });
    const int code = solve<kofn::AllCountsSolver>(call, work, level, threads);
    return code == KOFN_OK && large ? KOFN_LARGE_LOGITS : code;
}

int kofn_all_counts_gradient(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b,
                             const double* tilts, const double* weights, double* gradient, int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || (b > 0 && (!tilts || !weights)) || threads < 1) return KOFN_BAD_ARGUMENT;
    if (!gradient && input.start(b) > 0) return KOFN_BAD_ARGUMENT;
    const kofn::AllCountsGradientCall call{input, tilts, weights, gradient};
    const double work = all_counts_work(input, [](double size) { return 8.0 * size * std::sqrt(size); });
    return solve<kofn::AllCountsGradientSolver>(call, work, level, threads);
}

int kofn_class_counts(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, int64_t classes,
                      const int64_t* counts, void* value, void* gradient, double* posterior, int level, int threads) {
    const Input input{dtype == KOFN_FLOAT64, logits, offsets, n, b};
    if (!sound(input, dtype) || classes < 1 || (b > 0 && (!counts || !value)) || threads < 1) return KOFN_BAD_ARGUMENT;
    const kofn::ClassCall call{input, classes, counts, value, gradient, posterior};
    return solve<kofn::ClassSolver>(call, class_work(call), level, threads);
}

int kofn_interface(void) { return KOFN_INTERFACE; }

int kofn_levels(void) { return kofn::levels(); }
