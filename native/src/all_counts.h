// The whole distribution of S, right in every tail: log P(S = s) for every s, and its gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "all_counts_tree.h"
#include "bags.h"
#include "groups.h"
#include "kernels.h"
#include "tilt.h"

namespace kofn {

struct AllCountsCall {
    Input input;
    double *value, *tilts;  // tilts may be null
};

struct AllCountsGradientCall {
    Input input;
    const double *tilts, *weights;
    double* gradient;
};

// log P(S = s) for runs of bags, one after the other, with the same scratch memory.
class AllCountsSolver {
public:
    AllCountsSolver(const Kernels& kernels, const AllCountsCall& call)
        : kernels_(kernels), call_(call), groups_(kernels), tree_(kernels) {}
    void run(int64_t first, int64_t last);

private:
    double* value(int64_t j) const;  // of count 0 of the undecided instances
    void small_bags();

    const Kernels& kernels_;
    const AllCountsCall& call_;
    Groups groups_;
    int64_t first_ = 0;
    Undecided bags_;
    AllCountsTree tree_;
};

// The gradient of sum_s weights_s log P(S = s), likewise.
class AllCountsGradientSolver {
public:
    AllCountsGradientSolver(const Kernels& kernels, const AllCountsGradientCall& call)
        : kernels_(kernels), call_(call), groups_(kernels) {}
    void run(int64_t first, int64_t last);

private:
    void ends(int64_t j);
    void small_bags();
    void add_to_groups(int64_t j);
    void windows(int64_t j, const double* tilts);
    const double* weights(int64_t j) const;  // of count 0 of the undecided instances

    const Kernels& kernels_;
    const AllCountsGradientCall& call_;
    Groups groups_;
    int64_t first_ = 0;
    Undecided bags_;
    Buffer gradient_, tilted_, probs_, shares_;
};

}  // namespace kofn
