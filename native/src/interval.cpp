// One view of the distribution, tilted to the likeliest count of the interval, holds all of it. The distribution is
// log-concave, so away from that count the terms only fall. With c the end of the interval towards which the tilt t leans,
//
//     P(low <= S <= high) = e^{back(c)} sum_s P~(S = s) e^{-t (s - c)}    (Tilted::back in tilt.h),
//
// where no factor in the sum exceeds one. The terms of that sum, divided by it, are the weights of the posteriors.
#include "interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilt.h"
#include "window.h"

namespace kofn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// A total this large has lost nothing to underflow: what did underflow is below 1e-308, and all terms are positive.
constexpr double safe_total = 1e-200;

// Cells of the recursion's table, for each instance, up to which it beats the characteristic function.
constexpr double cells_per_instance = 80.0;

// After i of n instances only the counts from low - (n - i) to min(i, high) are looked at, which leaves about
// n high - high^2 / 2 - low^2 / 2 cells.
bool suits_recursion(int64_t size, int64_t low, int64_t high) {
    if (size > largest_member) return false;
    const auto n = static_cast<double>(size), l = static_cast<double>(low), h = static_cast<double>(high);
    return n * h - (h * h + l * l) / 2 <= cells_per_instance * n;
}

// e^{-t (s - c)} for s = first .. first + number - 1, every `step` numbers.
void leaning_weights(double tilt, int64_t anchor, int64_t first, int64_t number, int step, double* out) {
    for (int64_t k = 0; k < number; ++k)
        out[k * step] = tilt == 0.0 ? 1.0 : std::exp(std::min(0.0, -tilt * static_cast<double>(first + k - anchor)));
}

}  // namespace

void IntervalSolver::run(int64_t first, int64_t last) {
    first_ = first;
    bags_.take(kernels_, call_.input, first, last);
    if (instances_wanted()) posterior_.reserve(bags_.instances());
    totals_.resize(static_cast<std::size_t>(last - first));
    tilts_.assign(static_cast<std::size_t>(last - first), 0.0);
    terms_.assign(static_cast<std::size_t>(last - first), 0.0);
    groups_.clear(last - first);
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        const Wanted w = wanted(j);
        if (closed_form(j, w)) continue;
        const Bag bag = bags_.bag(j);
        const int64_t low = std::max<int64_t>(w.low, 0), high = std::min(w.high, bag.size);
        if (suits_recursion(bag.size, low, high))
            groups_.add(j, bag.p, bag.q, bag.size, low, high);
        else
            large_bag(j, {low, high});
    }
    small_bags();
    write_values();
    if (instances_wanted()) write_instances();
}

void IntervalSolver::write_values() {
    kernels_.log(totals_.data(), bags_.bags());
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        const double sum = totals_[j] + terms_[j], value = sum > 0.0 ? 0.0 : sum;  // rounding only; keeps a NaN
        if (call_.input.wide)
            static_cast<double*>(call_.value)[first_ + j] = value;
        else
            static_cast<float*>(call_.value)[first_ + j] = static_cast<float>(value);
    }
}

// log P is known: it is all in the term that is added to a logarithm of one.
void IntervalSolver::known(int64_t j, double log_value) {
    totals_[j] = 1.0;
    terms_[j] = log_value;
}

// All labels of the bag are the same: log prod_i q_i or log prod_i p_i. A product that is neither close to one, where its
// logarithm would lose digits, nor too small has that logarithm to rounding. Otherwise, and for one instance, whose loss is
// cross-entropy to the last digit, logarithms are summed.
void IntervalSolver::alike(int64_t j, const Bag& bag, bool none) {
    const double* factors = none ? bag.q : bag.p;
    double product = bag.size > 1 ? 1.0 : 0.0;
    for (int64_t i = 0; i < bag.size && product > safe_total; ++i) product *= factors[i];
    if (product > safe_total && product < 0.5)
        totals_[j] = product;
    else
        known(j, kernels_.log_sigmoid(bag.z, bag.size, none ? -1.0 : 1.0));
}

// Bags that need no distribution: the interval allows nothing or everything, or leaves no label open.
bool IntervalSolver::closed_form(int64_t j, Wanted w) {
    const Bag bag = bags_.bag(j);
    const bool impossible = w.low > std::min(w.high, bag.size) || w.high < 0;
    const bool mute = impossible || (w.low <= 0 && w.high >= bag.size);
    const bool none = w.high == 0, all = w.low == bag.size;
    if (!(bags_.broken(j) || mute || none || all)) return false;
    if (bags_.broken(j))
        known(j, not_a_number);
    else if (mute)
        known(j, impossible ? -infinity : 0.0);
    else
        alike(j, bag, none);
    if (instances_wanted()) {
        double* out = posterior_.data() + bags_.start(j);
        if (mute)
            std::copy_n(bag.p, bag.size, out);
        else
            std::fill_n(out, bag.size, none ? 0.0 : 1.0);
    }
    return true;
}

// First without a tilt; then, tilted, those whose interval proves too unlikely for that.
void IntervalSolver::small_bags() {
    const int lanes = kernels_.lanes;
    const auto visit = [&](const Group& group, const Member* members, int number, const double* probs, double* weights) {
        std::fill_n(weights, (group.high - group.low + 1) * lanes, 0.0);
        double* out[Group::max_lanes] = {};
        for (int l = 0; l < number; ++l) {
            const Member& member = members[l];
            const int64_t at = (member.low - group.low) * lanes + l, counts = member.high - member.low + 1;
            const double tilt = tilts_[member.bag];
            leaning_weights(tilt, tilt > 0.0 ? member.low : member.high, member.low, counts, lanes, weights + at);
            double total = 0.0;
            for (int64_t k = 0; k < counts; ++k) total += probs[at + k * lanes] * weights[at + k * lanes];
            if (!(total > safe_total)) again_.push_back(member.bag);
            totals_[member.bag] = total;
            const double scale = total > safe_total ? 1.0 / total : 0.0;
            for (int64_t k = 0; k < counts; ++k) weights[at + k * lanes] *= scale;
            if (instances_wanted()) out[l] = posterior_.data() + bags_.start(member.bag);
        }
        if (!instances_wanted()) return;
        groups_.pull(group, weights, out);
    };
    again_.clear();
    groups_.run(visit);
    if (again_.empty()) return;
    groups_.clear(static_cast<int64_t>(again_.size()));
    int64_t room = 0;
    for (const int64_t j : again_) room += 2 * bags_.size(j);
    double* scratch = tilted_.reserve(room);
    for (const int64_t j : again_) {
        const Bag bag = bags_.bag(j);
        const Wanted w = wanted(j);
        const int64_t low = std::max<int64_t>(w.low, 0), high = std::min(w.high, bag.size);
        const Tilted plain = untilted(kernels_, bag);
        const double target = std::clamp(plain.moments.mean, static_cast<double>(low), static_cast<double>(high));
        const Tilted view = solve_tilt(kernels_, bag, target, plain, scratch, scratch + bag.size);
        tilts_[j] = view.tilt;
        terms_[j] = view.back(view.tilt > 0.0 ? low : high);
        groups_.add(j, view.p, view.q, bag.size, low, high);
        scratch += 2 * bag.size;
    }
    groups_.run(visit);
}

void IntervalSolver::large_bag(int64_t j, Wanted w) {
    const Bag bag = bags_.bag(j);
    const Tilted plain = untilted(kernels_, bag);
    double* scratch = tilted_.reserve(2 * bag.size);
    const double target = std::clamp(plain.moments.mean, static_cast<double>(w.low), static_cast<double>(w.high));
    const Tilted view = solve_tilt(kernels_, bag, target, plain, scratch, scratch + bag.size);
    // One count is within a standard deviation of the mean; of an interval all is shown that is not negligible.
    const double mean = view.moments.mean;
    const double reach = radius(view.moments.variance, w.low == w.high ? 1.0 : negligible);
    int64_t first = w.low, last = w.high;
    if (first < last) {
        first = std::max(first, static_cast<int64_t>(std::ceil(mean - reach)));
        last = std::min(last, static_cast<int64_t>(std::floor(mean + reach)));
    }
    const int64_t number = last - first + 1, anchor = view.tilt > 0.0 ? w.low : w.high;
    Spectrum spectrum;
    look(kernels_, view, bag.size, reach, spectrum);
    double* probs = weights_.reserve(2 * number);
    double* weights = probs + number;
    kernels_.inverse(spectrum, first, number, probs);
    leaning_weights(view.tilt, anchor, first, number, 1, weights);
    double total = 0.0;
    for (int64_t k = 0; k < number; ++k) total += probs[k] * weights[k];
    totals_[j] = total;
    terms_[j] = view.back(anchor);
    if (!instances_wanted()) return;
    for (int64_t k = 0; k < number; ++k) weights[k] /= total;
    double* out = posterior_.data() + bags_.start(j);
    std::fill_n(out, bag.size, 0.0);
    kernels_.pull(view.p, view.q, bag.size, view.moments.widest, spectrum, first, number, weights, out);
}

// From the undecided instances of this run to the caller's arrays.
void IntervalSolver::write_instances() {
    if (!bags_.complete()) return write_incomplete();
    const int64_t begin = call_.input.start(first_), number = bags_.instances();
    const double* posterior = posterior_.data();
    if (call_.posterior) kernels_.clamp(posterior, number, call_.posterior + begin);
    if (call_.slope && call_.input.wide)
        kernels_.slope(posterior, bags_.p(), number, static_cast<double*>(call_.slope) + begin);
    else if (call_.slope)
        kernels_.slope_narrow(posterior, bags_.p(), number, static_cast<float*>(call_.slope) + begin);
}

void IntervalSolver::write_incomplete() {
    const Input& input = call_.input;
    const auto write = [&](int64_t at, double posterior, double slope) {
        if (call_.posterior) call_.posterior[at] = posterior;
        if (call_.slope && input.wide) static_cast<double*>(call_.slope)[at] = slope;
        if (call_.slope && !input.wide) static_cast<float*>(call_.slope)[at] = static_cast<float>(slope);
    };
    const auto infinite = [&](int64_t at) {
        return input.wide ? static_cast<const double*>(input.logits)[at]
                          : static_cast<double>(static_cast<const float*>(input.logits)[at]);
    };
    const int64_t begin = input.start(first_);
    double* posterior = posterior_.data();
    kernels_.clamp(posterior, bags_.instances(), posterior);
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        const int64_t from = input.start(first_ + j), to = input.start(first_ + j + 1);
        const double blank = bags_.broken(j) ? not_a_number : 0.0;
        for (int64_t at = from; at < to; ++at) write(at, infinite(at) > 0 ? 1.0 + blank : blank, blank);
        if (bags_.broken(j)) continue;
        for (int64_t i = bags_.start(j); i < bags_.start(j + 1); ++i)
            write(begin + bags_.source(i), posterior[i], posterior[i] - bags_.p()[i]);
    }
}

}  // namespace kofn
