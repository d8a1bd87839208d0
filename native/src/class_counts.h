// The joint distribution of class counts: log P(K = k) and the posteriors of the instances.
#pragma once

#include <cstdint>
#include <vector>

#include "bags.h"
#include "buffer.h"
#include "class_grid.h"
#include "class_tilt.h"
#include "kernels.h"

namespace kofn {

struct ClassCall {
    Input input;  // each instance has `classes` logits
    int64_t classes;
    const int64_t* counts;   // b * classes
    void *value, *gradient;  // float64 or float32 as the input is; gradient may be null
    double* posterior;       // or null
};

// Does runs of bags, one after the other, with the same scratch memory.
class ClassSolver {
public:
    ClassSolver(const Kernels& kernels, const ClassCall& call) : kernels_(kernels), call_(call), tilt_(kernels) {}
    void run(int64_t first, int64_t last);

private:
    // A bag without the instances that are not there and the classes that do not occur, these by descending count.
    struct Bag {
        int64_t number;  // in the call
        int64_t size, classes;
        double states;
        std::size_t order;  // where its classes begin in order_, and its counts in counts_
        uint64_t key;       // of its counts: like bags side by side
    };

    void take(int64_t first, int64_t last);
    void take_probabilities(int64_t first, int64_t last);
    bool closed_form(const Bag& bag);
    bool by_frequencies(const Bag& bag);
    void side_by_side(const Bag* const* bags, int number);
    void alone(const Bag& bag);
    ClassTable shape(const Bag& bag);
    double table(const Bag& bag, const double* p, double* joint);
    void tilted_table(const Bag& bag);
    const double* logs(const Bag& bag);
    void impossible(const Bag& bag) const;

    const double* probabilities(int64_t j) const {
        return probabilities_.data() + (call_.input.start(j) - begin_) * call_.classes;
    }
    void gather(const Bag& bag, double* out, int64_t step) const;
    void write_value(int64_t j, double value) const;
    void write_instances(const Bag& bag, const double* joint, int64_t step, double scale) const;
    void write_prior(int64_t j, double gradient) const;
    bool instances_wanted() const { return call_.gradient || call_.posterior; }
    bool absent(int64_t j, int64_t i) const { return absent_any_ && absent_[call_.input.start(j) - begin_ + i]; }

    const Kernels& kernels_;
    const ClassCall& call_;
    ClassTilt tilt_;
    ClassGrid grid_;
    int64_t begin_ = 0;  // first instance of the run
    std::vector<Bag> bags_;
    std::vector<int64_t> order_, counts_, strides_;
    std::vector<char> absent_;
    bool absent_any_ = false;
    Buffer probabilities_, p_, joint_, work_, logs_;
};

}  // namespace kofn
