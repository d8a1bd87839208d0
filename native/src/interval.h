// The distribution of one count or one interval of counts: log P(low <= S <= high) and the posteriors of the instances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bags.h"
#include "groups.h"
#include "kernels.h"

namespace kofn {

struct IntervalCall {
    Input input;
    const int64_t *low, *high;   // high may be null: high = low
    void *value, *slope;         // float64 or float32 as the input is; slope may be null
    double* posterior;           // or null
};

// Does runs of bags, one after the other, with the same scratch memory.
class IntervalSolver {
public:
    IntervalSolver(const Kernels& kernels, const IntervalCall& call) : kernels_(kernels), call_(call), groups_(kernels) {}
    void run(int64_t first, int64_t last);

private:
    struct Wanted {
        int64_t low, high;  // of the undecided instances
    };

    // Clamped to where all counts beyond are alike, so that no subtraction can overflow.
    Wanted wanted(int64_t j) const {
        const int64_t most = call_.input.size(first_ + j) + 1, ones = bags_.ones(j);
        const int64_t low = call_.low[first_ + j], high = call_.high ? call_.high[first_ + j] : low;
        return {std::clamp<int64_t>(low, -1, most) - ones, std::clamp<int64_t>(high, -1, most) - ones};
    }
    void known(int64_t j, double log_value);
    void alike(int64_t j, const Bag& bag, bool none);
    bool closed_form(int64_t j, Wanted w);
    void small_bags();
    void large_bag(int64_t j, Wanted w);
    void write_values();
    void write_instances();
    void write_incomplete();
    bool instances_wanted() const { return call_.slope || call_.posterior; }

    const Kernels& kernels_;
    const IntervalCall& call_;
    Groups groups_;
    int64_t first_ = 0;
    Undecided bags_;
    Buffer posterior_, tilted_, weights_;
    std::vector<double> totals_, tilts_, terms_;  // of each bag: its sum, its tilt, what is added to the sum's log
    std::vector<int64_t> again_;          // small bags that underflowed without a tilt
};

}  // namespace kofn
