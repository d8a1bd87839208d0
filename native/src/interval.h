// The distribution of one count or one interval of counts: log P(low <= S <= high) and the posteriors of the instances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bags.h"
#include "groups.h"
#include "instances.h"
#include "kernels.h"
#include "tilt.h"

namespace kofn {

// The counts that are asked for, of the undecided instances.
struct Wanted {
    int64_t low, high;

    double nearest(double count) const { return std::clamp(count, static_cast<double>(low), static_cast<double>(high)); }
    Wanted possible(int64_t size) const { return {std::max<int64_t>(low, 0), std::min(high, size)}; }
};

struct IntervalCall {
    Input input;
    const int64_t *low, *high;   // high may be null: high = low
    void* value;                 // float64 or float32 as the input is
    Results results;

    // Clamped to where all counts beyond are alike, so that no subtraction can overflow.
    Wanted wanted(int64_t j, int64_t size, int64_t ones) const {
        const int64_t most = size + 1, last = high ? high[j] : low[j];
        return {std::clamp<int64_t>(low[j], -1, most) - ones, std::clamp<int64_t>(last, -1, most) - ones};
    }
    void put_value(int64_t j, double log_value) const;
};

// Bags above this size are not for the solver below but a LargeBag each (large_bag.h).
constexpr int64_t largest_in_run = 131072;

// Some bags need no distribution: the interval allows nothing or anything, or leaves no label open.
enum class Case { open, broken, impossible, anything, none, all };
Case case_of(Wanted wanted, int64_t size, bool broken);

// What is seen of an interval from a tilted mean. One count is within a standard deviation of it; of more all is shown that
// is not negligible.
struct Sight {
    double tilt, reach;
    int64_t first, number, anchor;

    Sight(const Tilted& view, Wanted wanted);

    // sum_s P~(S = s) e^{-t (s - c)} (interval.cpp). `weights` has room for twice the counts, and gets what each adds to it.
    double weigh(const Kernels& kernels, const Spectrum& spectrum, double* weights) const;
};

// Does runs of bags, one after the other, with the same scratch memory.
class IntervalSolver {
public:
    IntervalSolver(const Kernels& kernels, const IntervalCall& call) : kernels_(kernels), call_(call), groups_(kernels) {}
    void run(int64_t first, int64_t last);

private:
    void known(int64_t j, double log_value);
    void alike(int64_t j, const Bag& bag, bool none);
    void closed_form(int64_t j, Case which);
    void small_bags();
    void large_bag(int64_t j, Wanted w);
    void write_values();
    Wanted asked(int64_t j) const { return call_.wanted(first_ + j, call_.input.size(first_ + j), bags_.ones(j)); }
    Wanted wanted(int64_t j) const { return asked(j).possible(bags_.size(j)); }

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
