// What is left of some bags to decide, once the instances with infinite logits are taken out.
#pragma once

#include <cstdint>
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

    int64_t start(int64_t j) const { return offsets ? offsets[j] : j * n; }
    int64_t size(int64_t j) const { return start(j + 1) - start(j); }

    // Some instances as a bag of their own.
    Input part(int64_t from, int64_t number) const {
        const char* bytes = static_cast<const char*>(logits);
        return {wide, bytes + from * static_cast<int64_t>(wide ? sizeof(double) : sizeof(float)), nullptr, number, 1};
    }
};

// The undecided instances of one bag: z finite, p = sigmoid(z), q = sigmoid(-z).
struct Bag {
    const double *z, *p, *q;
    int64_t size;
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
    Bag bag(int64_t j) const { return {z_ + start_[j], p_ + start_[j], q_ + start_[j], size(j)}; }
    int64_t start(int64_t j) const { return start_[j]; }
    int64_t size(int64_t j) const { return start_[j + 1] - start_[j]; }
    int64_t ones(int64_t j) const { return complete() ? 0 : ones_[j]; }         // logits of +inf
    bool broken(int64_t j) const { return !complete() && broken_[j] != 0; }     // has a NaN, which counts as undecided
    const double* p() const { return p_; }

    // Position of an undecided instance in the run as the caller has it.
    int64_t source(int64_t i) const { return complete() ? i : source_[i]; }

private:
    void compact(const double* logits, const Input& input);

    int64_t first_ = 0, last_ = 0;
    const double* z_ = nullptr;
    double *p_ = nullptr, *q_ = nullptr;
    Buffer wide_, kept_, probabilities_;
    std::vector<int64_t> start_, ones_, source_;
    std::vector<char> broken_;
};

}  // namespace kofn
