// Small bags whose distribution cannot underflow are done by the recursion, which has every count; all others by a tree
// of convolutions (all_counts_tree.h). It leaves with each count the tilt that made it likely, and a gradient looks at
// runs of counts that share a tilt through their characteristic function.
#include "all_counts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "window.h"

namespace kofn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

constexpr double carries = 1e-17;  // of a bag's weight: a window with less than that cannot be seen in the sum

// The distribution is computed by recursion up to this size of the bag, where that cannot underflow.
constexpr int64_t largest_recursion = 128;

// A log-probability that rounding may have lifted above zero.
double at_most_zero(double value) { return value > 0.0 ? 0.0 : value; }

}  // namespace

double* AllCountsSolver::value(int64_t j) const {
    return call_.value + call_.input.start(first_ + j) + (first_ + j) + bags_.ones(j);
}

void AllCountsSolver::run(int64_t first, int64_t last) {
    first_ = first;
    bags_.take(kernels_, call_.input, first, last);
    groups_.clear(last - first);
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        const Bag bag = bags_.bag(j);
        const int64_t counts = call_.input.size(first + j) + 1, ones = bags_.ones(j);
        double* tilts = call_.tilts ? call_.tilts + call_.input.start(first + j) + (first + j) : nullptr;
        std::fill_n(value(j) - ones, counts, -infinity);
        if (tilts) std::fill_n(tilts, counts, not_a_number);
        if (bags_.broken(j)) {
            std::fill_n(value(j), counts - ones, not_a_number);
            if (tilts && bag.size > 1) std::fill_n(tilts + 1, bag.size - 1, 0.0);  // windows, which will see the NaN
            continue;
        }
        if (bag.size >= 2 && (counts - 1 > largest_recursion || !never_underflows(kernels_, bag.z, bag.size))) {
            tree_.solve(bag, value(j), tilts);
            for (int64_t s = 1; s < bag.size; ++s) value(j)[s] = at_most_zero(value(j)[s]);
        } else if (bag.size >= 2) {
            groups_.add(j, bag.p, bag.q, bag.size, 1, bag.size - 1);
        }
        value(j)[0] = kernels_.log_sigmoid(bag.z, nullptr, bag.size, -1.0);
        value(j)[bag.size] = kernels_.log_sigmoid(bag.z, nullptr, bag.size, 1.0);
    }
    small_bags();
}

void AllCountsSolver::small_bags() {
    const int lanes = kernels_.lanes;
    groups_.run([&](const Group& group, const Member* members, int number, const double* probs, double*) {
        for (int l = 0; l < number; ++l) {
            double* out = value(members[l].bag);
            for (int64_t s = 1; s < members[l].size; ++s) out[s] = probs[(s - group.low) * lanes + l];
            kernels_.log(out + 1, members[l].size - 1);
            for (int64_t s = 1; s < members[l].size; ++s) out[s] = at_most_zero(out[s]);
        }
    });
}

const double* AllCountsGradientSolver::weights(int64_t j) const {
    return call_.weights + call_.input.start(first_ + j) + (first_ + j) + bags_.ones(j);
}

void AllCountsGradientSolver::run(int64_t first, int64_t last) {
    first_ = first;
    bags_.take(kernels_, call_.input, first, last);
    gradient_.reserve(bags_.instances());
    groups_.clear(last - first);
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        if (bags_.broken(j)) continue;
        const int64_t size = bags_.size(j);
        const double* tilts = call_.tilts + call_.input.start(first + j) + (first + j);
        ends(j);
        if (size >= 2 && std::isnan(tilts[1]) && size <= largest_member)
            add_to_groups(j);
        else
            windows(j, tilts);
    }
    small_bags();
    const Input& input = call_.input;
    double* out = call_.gradient + input.start(first);
    if (bags_.complete()) {
        std::copy_n(gradient_.data(), bags_.instances(), out);
        return;
    }
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        std::fill_n(call_.gradient + input.start(first + j), input.size(first + j),
                    bags_.broken(j) ? not_a_number : 0.0);
        if (bags_.broken(j)) continue;
        for (int64_t i = bags_.start(j); i < bags_.start(j + 1); ++i) out[bags_.source(i)] = gradient_.data()[i];
    }
}

// sum_s weights_s (P(y_i = 1 | S = s) - p_i), so far without the posteriors of inner counts. Given S = 0 nobody is a
// one; given S = size all are.
void AllCountsGradientSolver::ends(int64_t j) {
    const Bag bag = bags_.bag(j);
    const double* w = weights(j);
    double total = 0.0;
    for (int64_t s = 0; s <= bag.size; ++s) total += w[s];
    double* out = gradient_.data() + bags_.start(j);
    for (int64_t i = 0; i < bag.size; ++i) out[i] = w[bag.size] - total * bag.p[i];
}

// To the recursion, with the inner counts from the first to the last that has a weight.
void AllCountsGradientSolver::add_to_groups(int64_t j) {
    const Bag bag = bags_.bag(j);
    const double* w = weights(j);
    int64_t low = 1, high = bag.size - 1;
    while (low <= high && w[low] == 0.0) ++low;
    while (high > low && w[high] == 0.0) --high;
    if (low <= high) groups_.add(j, bag.p, bag.q, bag.size, low, high);
}

void AllCountsGradientSolver::small_bags() {
    const int lanes = kernels_.lanes;
    double* shares = shares_.reserve(lanes * largest_member);
    groups_.run([&](const Group& group, const Member* members, int number, const double* probs, double* ratios) {
        std::fill_n(ratios, (group.high - group.low + 1) * lanes, 0.0);
        double* out[Group::max_lanes] = {};
        for (int l = 0; l < number; ++l) {
            const double* w = weights(members[l].bag);
            out[l] = shares + l * largest_member;
            for (int64_t s = members[l].low; s <= members[l].high; ++s) {
                const int64_t at = (s - group.low) * lanes + l;
                ratios[at] = w[s] / probs[at];
            }
        }
        groups_.pull(group, ratios, out);
        for (int l = 0; l < number; ++l) {
            double* to = gradient_.data() + bags_.start(members[l].bag);
            for (int64_t i = 0; i < members[l].size; ++i) to[i] += out[l][i];
        }
    });
}

// The windows of a sweep are runs of counts that share a tilt. Those that carry no weight are passed over.
void AllCountsGradientSolver::windows(int64_t j, const double* tilts) {
    const Bag bag = bags_.bag(j);
    const double* w = weights(j);
    double enough = 0.0;
    for (int64_t s = 0; s <= bag.size; ++s) enough += carries * std::fabs(w[s]);
    double* scratch = tilted_.reserve(2 * bag.size);
    int64_t stop = 1;
    for (int64_t first = 1; first < bag.size; first = stop) {
        double carried = std::fabs(w[first]);
        for (stop = first + 1; stop < bag.size && tilts[stop] == tilts[first]; ++stop) carried += std::fabs(w[stop]);
        if (std::isnan(tilts[first]) || carried <= enough) continue;
        const int64_t number = stop - first;
        const Tilted view = tilted(kernels_, bag, tilts[first], scratch, scratch + bag.size);
        Spectrum spectrum;
        look(kernels_, view, bag, radius(view.moments.variance, taken_log), spectrum);
        double* ratios = probs_.reserve(number);
        kernels_.inverse(spectrum, first, number, ratios);
        for (int64_t k = 0; k < number; ++k) ratios[k] = ratios[k] > 0.0 ? w[first + k] / ratios[k] : 0.0;
        double* out = gradient_.data() + bags_.start(j);
        const Sides sides = kernels_.make_sides(spectrum, first, number, ratios);
        kernels_.pull(view.p, view.q, bag.size, view.moments.widest, spectrum, sides, out);
    }
}

}  // namespace kofn
