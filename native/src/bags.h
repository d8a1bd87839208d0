// What is left of some bags to decide, once the instances with infinite logits are taken out.
#pragma once

#include <atomic>
#include <cstdint>
#include <numeric>
#include <vector>

#include "buffer.h"
#include "kernels.h"

namespace kofn {

// The bags as the caller has them.
struct Input {
    bool wide;  // float64 rather than float32
    const void* logits;
    const int64_t* offsets;
    int64_t n, b;
    const int64_t* copies = nullptr;     // how many alike people each row stands for; null: one
    std::atomic<bool>* large = nullptr;  // becomes true where a finite logit is above largest_logit in size; or null

    int64_t start(int64_t j) const { return offsets ? offsets[j] : j * n; }
    int64_t size(int64_t j) const { return start(j + 1) - start(j); }  // in rows
    int64_t people(int64_t j) const {
        return copies ? std::accumulate(copies + start(j), copies + start(j + 1), int64_t{0}) : size(j);
    }

    // Some instances as a bag of their own.
    Input part(int64_t from, int64_t number) const {
        const int64_t bytes = from * static_cast<int64_t>(wide ? sizeof(double) : sizeof(float));
        return {wide, static_cast<const char*>(logits) + bytes, nullptr, number, 1, nullptr, large};
    }
};

// The undecided instances of one bag: z finite, p = sigmoid(z), q = sigmoid(-z). With copies, `size` rows of them stand
// for `people`.
struct Bag {
    const double *z, *p, *q;
    int64_t size;
    const double* copies = nullptr;  // null: one each
    int64_t people = size;
};

// The undecided instances of a run of bags.
class Undecided {
public:
    void take(const Kernels& kernels, const Input& input, int64_t first, int64_t last) {
        gather(kernels, input, first, last);
        find_probabilities(kernels);
    }
    // The same in two steps: the logits, then what the sigmoid makes of them.
    void gather(const Kernels& kernels, const Input& input, int64_t first, int64_t last);
    void find_probabilities(const Kernels& kernels);

    int64_t bags() const { return last_ - first_; }
    int64_t instances() const { return start_.back(); }
    bool complete() const { return source_.empty(); }  // nothing was taken out: same instances as the input

    // Numbers from here on count from the first bag of the run, positions from its first undecided instance.
    Bag bag(int64_t j) const {
        const int64_t at = start_[j];
        if (complete() || people_[j] == size(j)) return {z_ + at, p_ + at, q_ + at, size(j)};
        return {z_ + at, p_ + at, q_ + at, size(j), copies_.data() + at, people_[j]};
    }
    int64_t start(int64_t j) const { return start_[j]; }
    int64_t size(int64_t j) const { return start_[j + 1] - start_[j]; }
    int64_t ones(int64_t j) const { return complete() ? 0 : ones_[j]; }      // logits of +inf
    bool broken(int64_t j) const { return !complete() && broken_[j] != 0; }  // has a NaN, which counts as undecided
    const double* p() const { return p_; }

    // From here on the logits may be moved: bag j is as it is with `by` added to its logits, and then has these p and
    // q.
    void make_movable();
    void move(int64_t j, double by, const double* p, const double* q);

    // Position of an undecided instance in the run as the caller has it.
    int64_t source(int64_t i) const { return complete() ? i : source_[i]; }

private:
    void compact(const double* logits, const Input& input);

    int64_t first_ = 0, last_ = 0;
    const double* z_ = nullptr;
    double *p_ = nullptr, *q_ = nullptr;
    Buffer wide_, kept_, copies_, moved_, probabilities_;
    std::vector<int64_t> start_, ones_, people_, source_;
    std::vector<char> broken_;
};

}  // namespace kofn
