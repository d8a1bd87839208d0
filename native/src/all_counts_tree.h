// The distribution of one large bag's count, every tail included, from those of its halves, and of theirs: a tree of
// convolutions (all_counts_merge.h). A level of it costs n log n, all of it n log^2 n.
#pragma once

#include <cstdint>
#include <vector>

#include "all_counts_merge.h"
#include "bags.h"
#include "groups.h"
#include "kernels.h"

namespace kofn {

class AllCountsTree {
public:
    explicit AllCountsTree(const Kernels& kernels) : kernels_(kernels), groups_(kernels), merger_(kernels) {}

    // log P(S = s) of a bag of two or more to out, size + 1 numbers. Of each inner count the tilt, unless that is null.
    void solve(const Bag& bag, double* out, double* tilts);

private:
    struct Node {
        int64_t start, second;  // where its numbers begin, first its left half's, and where those of its right half do
        int64_t left, right;    // sizes of the halves; a leaf is all left
    };

    void shuffle(const Bag& bag);
    void plan(int64_t first, int64_t size);
    void leaves();

    const Kernels& kernels_;
    Groups groups_;
    AllCountsMerger merger_;
    std::vector<Node> nodes_;  // halves before the whole
    Buffer bag_, logs_, whole_;
    Bag shuffled_{};
    int64_t room_ = 0, leaf_ = 0;
};

// Whether every count can be computed without a tilt: P(S = s) >= prod_i min(p_i, q_i), and -log min(p, q) <= |z| +
// log 2.
bool never_underflows(const Kernels& kernels, const double* z, int64_t size);

}  // namespace kofn
