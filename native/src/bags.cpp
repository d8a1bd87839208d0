#include "bags.h"

#include <algorithm>
#include <cmath>

namespace kofn {

void Undecided::gather(const Kernels& kernels, const Input& input, int64_t first, int64_t last) {
    first_ = first;
    last_ = last;
    source_.clear();
    const int64_t begin = input.start(first), total = input.start(last) - begin;
    bool ordinary;
    if (input.wide) {
        z_ = static_cast<const double*>(input.logits) + begin;
        ordinary = kernels.ordinary(z_, total);
    } else {
        double* wide = wide_.reserve(total);
        ordinary = kernels.widen(static_cast<const float*>(input.logits) + begin, total, wide);
        z_ = wide;
    }
    start_.resize(static_cast<std::size_t>(last - first + 1));
    for (int64_t j = first; j <= last; ++j) start_[j - first] = input.start(j) - begin;
    const auto one = [](int64_t copies) { return copies == 1; };
    if (!ordinary || (input.copies && !std::all_of(input.copies + begin, input.copies + begin + total, one)))
        compact(z_, input);
}

void Undecided::find_probabilities(const Kernels& kernels) {
    p_ = probabilities_.reserve(2 * instances());
    q_ = p_ + instances();
    kernels.sigmoid(z_, instances(), 0.0, p_, q_);
}

void Undecided::compact(const double* logits, const Input& input) {
    const int64_t begin = input.start(first_), total = input.start(last_) - begin;
    double *z = kept_.reserve(total), *copies = input.copies ? copies_.reserve(total) : nullptr;
    source_.reserve(static_cast<std::size_t>(total) + 1);
    ones_.assign(static_cast<std::size_t>(bags()), 0);
    people_.assign(static_cast<std::size_t>(bags()), 0);
    broken_.assign(static_cast<std::size_t>(bags()), 0);
    int64_t count = 0;
    for (int64_t j = 0; j < bags(); ++j) {
        const int64_t from = start_[j], to = start_[j + 1];
        start_[j] = count;
        for (int64_t i = from; i < to; ++i) {
            const int64_t people = input.copies ? input.copies[begin + i] : 1;
            if (std::isinf(logits[i]) || people == 0) {
                ones_[j] += logits[i] > 0 ? people : 0;
                continue;
            }
            broken_[j] |= std::isnan(logits[i]);
            if (input.large && std::abs(logits[i]) > largest_logit) input.large->store(true, std::memory_order_relaxed);
            people_[j] += people;
            if (copies) copies[count] = static_cast<double>(people);
            z[count++] = logits[i];
            source_.push_back(i);
        }
    }
    start_[bags()] = count;
    source_.push_back(total);  // an end, so that a run without undecided instances is not mistaken for a complete one
    z_ = z;
}

void Undecided::make_movable() {
    double* z = moved_.reserve(instances());
    std::copy_n(z_, instances(), z);
    z_ = z;
}

void Undecided::move(int64_t j, double by, const double* p, const double* q) {
    for (int64_t i = 0; i < size(j); ++i) moved_.data()[start_[j] + i] += by;
    std::copy_n(p, size(j), p_ + start_[j]);
    std::copy_n(q, size(j), q_ + start_[j]);
}

}  // namespace kofn
