// An event, one count or an interval of them: log P(low <= S <= high), its derivatives and the posteriors of the
// instances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bags.h"
#include "groups.h"
#include "kernels.h"
#include "random_effect.h"
#include "tilt.h"

namespace kofn {

// The counts that are asked for, of the undecided instances.
struct Wanted {
    int64_t low, high;

    double nearest(double count) const {
        return std::clamp(count, static_cast<double>(low), static_cast<double>(high));
    }
    Wanted possible(int64_t size) const { return {std::max<int64_t>(low, 0), std::min(high, size)}; }
};

struct EventCall {
    Input input;
    const int64_t *low, *high;     // high may be null: high = low
    const double* sigma;           // standard deviation of each bag's random effect, or null: none
    double weight;                 // of all derivatives
    void* value;                   // float64 or float32 as the input is, or null
    double* sums;                  // the same in float64, or null
    void* gradient;                // as the input is, or null
    double *by_sigma, *posterior;  // or null

    bool of_instances() const { return gradient || posterior; }
    // Clamped to where all counts beyond are alike, so that no subtraction can overflow.
    Wanted wanted(int64_t j, int64_t people, int64_t ones) const {
        const int64_t most = people + 1, last = high ? high[j] : low[j];
        return {std::clamp<int64_t>(low[j], -1, most) - ones, std::clamp<int64_t>(last, -1, most) - ones};
    }
    void put_value(int64_t j, double log_value) const;

    // What is known of the undecided instances of bags [first, last) of `rows`, which begin at instance `from` of all:
    // to the caller's arrays. The gradient is `posterior` less `prior`. An instance of infinite logit is decided; of a
    // bag with a NaN nothing is known. `posterior` may be changed.
    void put_instances(const Kernels& kernels, const Input& rows, int64_t from, int64_t first, int64_t last,
                       const Undecided& bags, double* posterior, const double* prior) const;
    void put_unknown(int64_t from, int64_t number) const;  // NaN
};

// Bags above this size are not for the solver below but a LargeBag each (large_bag.h).
constexpr int64_t largest_in_run = 131072;

// Some bags need no distribution: the interval allows nothing or anything, or leaves no label open.
enum class Case { open, broken, impossible, anything, none, all };
Case case_of(Wanted wanted, int64_t size, bool broken);

// What is seen of an interval from a tilted mean. One count is within a standard deviation of it; of more all is shown
// that is not negligible.
struct Sight {
    double tilt, reach;
    int64_t first, number, anchor;

    Sight(const Tilted& view, Wanted wanted);

    // sum_s P~(S = s) e^{-t (s - c)} (event.cpp). `weights` has room for twice the counts, and gets what each adds to
    // it.
    double weigh(const Kernels& kernels, const Spectrum& spectrum, double* weights) const;
};

// Does runs of bags, one after the other, with the same scratch memory.
class EventSolver {
public:
    EventSolver(const Kernels& kernels, const EventCall& call)
        : kernels_(kernels), call_(call), groups_(kernels), effect_(kernels) {}
    void run(int64_t first, int64_t last);

private:
    void known(int64_t j, double log_value);
    void alike(int64_t j, const Bag& bag, bool none);
    void closed_form(int64_t j, Case which);
    void small_bags();
    void large_bag(int64_t j, Wanted w);
    void write_values();
    double add_effect(int64_t j, int64_t count);
    Wanted asked(int64_t j) const { return call_.wanted(first_ + j, call_.input.people(first_ + j), bags_.ones(j)); }
    Wanted wanted(int64_t j) const { return asked(j).possible(bags_.bag(j).people); }

    const Kernels& kernels_;
    const EventCall& call_;
    Groups groups_;
    int64_t first_ = 0;
    Undecided bags_;
    RandomEffect effect_;
    Buffer posterior_, prior_, tilted_, weights_;
    std::vector<double> totals_, tilts_, terms_,
        effects_;                 // of each bag: its sum, its tilt, what is added to the sum's log
    std::vector<int64_t> again_;  // small bags that underflowed without a tilt
};

}  // namespace kofn
