// Far from the mean the untilted distribution is below anything that float64 can resolve. So the counts are walked through
// from 1 to n - 1 with windows, each tilted to a count a little ahead. Of a window only counts at least 1e-2 as likely as
// its likeliest are taken, about 6 standard deviations of them; the next window begins where they end. That makes about 0.6
// sqrt(n) windows, each linear in n. Each count remembers its tilt, from which the gradient builds the same windows again.
//
// Small bags whose distribution cannot underflow need none of this: the recursion has every count.
#include "law.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "window.h"

namespace kofn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double smallest = std::numeric_limits<double>::min();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

constexpr double taken = 1e-2;      // of a window's largest probability: loses two digits of sixteen
constexpr double half_width = 3.0;  // sqrt(2 log 100): how many standard deviations that is, to either side
constexpr double reach_log = 6.907755278982137;  // windows are exact down to 1e-3, for the tilts of the torch engine too
constexpr double carries = 1e-17;  // of a bag's weight: a window with less than that cannot be seen in the sum

// The distribution is computed by recursion up to this size of the bag, where that cannot underflow.
constexpr int64_t largest_recursion = 128;

// A log-probability that rounding may have lifted above zero.
double at_most_zero(double value) { return value > 0.0 ? 0.0 : value; }

// Whether every count can be computed without a tilt: P(S = s) >= prod_i min(p_i, q_i), and -log min(p, q) <= |z| + log 2.
bool never_underflows(const Kernels& kernels, const Bag& bag) {
    return kernels.sum_abs(bag.z, bag.size) + static_cast<double>(bag.size) * 0.6931471805599453 < 599.999;
}

}  // namespace

double* LawSolver::value(int64_t j) const {
    return call_.value + call_.input.start(first_ + j) + (first_ + j) + bags_.ones(j);
}

void LawSolver::run(int64_t first, int64_t last) {
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
        value(j)[0] = kernels_.log_sigmoid(bag.z, bag.size, -1.0);
        value(j)[bag.size] = kernels_.log_sigmoid(bag.z, bag.size, 1.0);
        if (bag.size < 2) continue;
        if (counts - 1 <= largest_recursion && never_underflows(kernels_, bag))
            groups_.add(j, bag.p, bag.q, bag.size, 1, bag.size - 1);
        else
            sweep(j, tilts);
    }
    small_bags();
}

void LawSolver::small_bags() {
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

// A view of the bag from which count `next` can be seen, with a mean as far ahead of it as possible. `centre` is where to
// try first and where it ended up.
Tilted LawSolver::view_from(const Bag& bag, int64_t next, int64_t& centre, const Tilted& before) {
    double* scratch = tilted_.data();
    Tilted view = before;
    for (;;) {
        view = solve_tilt(kernels_, bag, static_cast<double>(centre), view, scratch, scratch + bag.size);
        const double ahead = half_width * std::sqrt(view.moments.variance);
        if (centre == next || view.moments.mean - static_cast<double>(next) <= ahead) return view;
        const auto within = next + static_cast<int64_t>(0.9 * ahead);
        centre = std::min(within, next + (centre - next) / 2);
    }
}

// Counts 1 to size - 1 by windows.
void LawSolver::sweep(int64_t j, double* tilts) {
    const Bag bag = bags_.bag(j);
    double* out = value(j);
    tilted_.reserve(2 * bag.size);
    Tilted view = untilted(kernels_, bag);
    int64_t next = 1;
    int64_t centre = std::min<int64_t>(bag.size - 1, 10);  // of equal logits, 2.8 standard deviations ahead
    while (next < bag.size) {
        view = view_from(bag, next, centre, view);
        const double reach = radius(view.moments.variance, reach_log), mean = view.moments.mean;
        const int64_t last = std::min(bag.size - 1, std::max(next, static_cast<int64_t>(std::floor(mean + reach))));
        Spectrum spectrum;
        look(kernels_, view, bag.size, reach, spectrum);
        double* probs = probs_.reserve(last - next + 1);
        kernels_.inverse(spectrum, next, last - next + 1, probs);
        // The distribution is log-concave: it rises to its largest and falls from there.
        const double* end = probs + (last - next + 1);
        const double* peak = std::max_element(static_cast<const double*>(probs), end);
        const bool seen = static_cast<double>(next) >= mean - reach && probs[0] >= taken * *peak;
        if (!seen && centre > next) {
            centre = next + (centre - next) / 2;
            continue;
        }
        const double least = taken * *peak;
        const double* stop = std::find_if(peak, end, [least](double p) { return p < least; });
        // One at least. Logits of 1e300 are further apart than any tilt that a float64 holds can resolve: then even the
        // count it was made for may be nothing but rounding here, below zero too. Next to log p = -1e300 it does not
        // matter.
        const int64_t number = std::max<int64_t>(1, stop - probs);
        std::transform(probs, probs + number, out + next, [](double p) { return std::max(p, smallest); });
        kernels_.log(out + next, number);
        for (int64_t s = next; s < next + number; ++s) out[s] = at_most_zero(out[s] + view.back(s));
        if (tilts) std::fill_n(tilts + next, number, view.tilt);
        next += number;
        const auto step = static_cast<int64_t>(0.9 * half_width * std::sqrt(view.moments.variance));
        centre = std::min(bag.size - 1, next + step);
    }
}

const double* LawGradientSolver::weights(int64_t j) const {
    return call_.weights + call_.input.start(first_ + j) + (first_ + j) + bags_.ones(j);
}

void LawGradientSolver::run(int64_t first, int64_t last) {
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
        std::fill_n(call_.gradient + input.start(first + j), input.size(first + j), bags_.broken(j) ? not_a_number : 0.0);
        if (bags_.broken(j)) continue;
        for (int64_t i = bags_.start(j); i < bags_.start(j + 1); ++i) out[bags_.source(i)] = gradient_.data()[i];
    }
}

// sum_s weights_s (P(y_i = 1 | S = s) - p_i), so far without the posteriors of inner counts. Given S = 0 nobody is a one;
// given S = size all are.
void LawGradientSolver::ends(int64_t j) {
    const Bag bag = bags_.bag(j);
    const double* w = weights(j);
    double total = 0.0;
    for (int64_t s = 0; s <= bag.size; ++s) total += w[s];
    double* out = gradient_.data() + bags_.start(j);
    for (int64_t i = 0; i < bag.size; ++i) out[i] = w[bag.size] - total * bag.p[i];
}

// To the recursion, with the inner counts from the first to the last that has a weight.
void LawGradientSolver::add_to_groups(int64_t j) {
    const Bag bag = bags_.bag(j);
    const double* w = weights(j);
    int64_t low = 1, high = bag.size - 1;
    while (low <= high && w[low] == 0.0) ++low;
    while (high > low && w[high] == 0.0) --high;
    if (low <= high) groups_.add(j, bag.p, bag.q, bag.size, low, high);
}

void LawGradientSolver::small_bags() {
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
void LawGradientSolver::windows(int64_t j, const double* tilts) {
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
        look(kernels_, view, bag.size, radius(view.moments.variance, reach_log), spectrum);
        double* ratios = probs_.reserve(number);
        kernels_.inverse(spectrum, first, number, ratios);
        for (int64_t k = 0; k < number; ++k) ratios[k] = ratios[k] > 0.0 ? w[first + k] / ratios[k] : 0.0;
        double* out = gradient_.data() + bags_.start(j);
        kernels_.pull(view.p, view.q, bag.size, view.moments.widest, spectrum, first, number, ratios, out);
    }
}

}  // namespace kofn
