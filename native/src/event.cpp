// One view of the distribution, tilted to the likeliest count of the interval, holds all of it. The distribution is
// log-concave, so away from that count the terms only fall. With c the end of the interval towards which the tilt t
// leans,
//
//     P(low <= S <= high) = e^{back(c)} sum_s P~(S = s) e^{-t (s - c)}    (Tilted::back in tilt.h),
//
// where no factor in the sum exceeds one. The terms of that sum, divided by it, are the weights of the posteriors.
#include "event.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

void EventCall::put_value(int64_t j, double log_value) const {
    const double at_most_zero = log_value > 0.0 ? 0.0 : log_value;  // rounding only; keeps a NaN
    if (sums) sums[j] = at_most_zero;
    if (value && input.wide) static_cast<double*>(value)[j] = at_most_zero;
    if (value && !input.wide) static_cast<float*>(value)[j] = static_cast<float>(at_most_zero);
}

void EventCall::put_instances(const Kernels& kernels, const Input& rows, int64_t from, int64_t first, int64_t last,
                              const Undecided& bags, double* found, const double* prior) const {
    from += rows.start(first);
    const int64_t number = bags.instances();
    double* wide = gradient && input.wide ? static_cast<double*>(gradient) + from : nullptr;
    float* narrow = gradient && !input.wide ? static_cast<float*>(gradient) + from : nullptr;
    if (bags.complete()) {
        if (posterior) kernels.clamp(found, number, posterior + from);
        if (wide) kernels.gradient(found, prior, number, weight, wide);
        if (narrow) kernels.gradient_narrow(found, prior, number, weight, narrow);
        return;
    }
    const auto put = [&](int64_t at, double given, double derivative) {
        if (posterior) posterior[from + at] = given;
        if (wide) wide[at] = derivative;
        if (narrow) narrow[at] = static_cast<float>(derivative);
    };
    // What was taken out: infinite logits are decided, and of nobody nothing is known.
    for (int64_t at = 0; at < rows.start(last) - rows.start(first); ++at) {
        const double z = input.wide ? static_cast<const double*>(input.logits)[from + at]
                                    : static_cast<const float*>(input.logits)[from + at];
        put(at, 1.0 / (1.0 + std::exp(-z)), 0.0);
    }
    kernels.clamp(found, number, found);
    for (int64_t j = 0; j < last - first; ++j) {
        const double* copies = bags.bag(j).copies;
        for (int64_t k = 0; k < bags.size(j) && !bags.broken(j); ++k) {
            const int64_t i = bags.start(j) + k;
            put(bags.source(i), found[i], weight * (copies ? copies[k] : 1.0) * (found[i] - prior[i]));
        }
        if (bags.broken(j)) put_unknown(from + rows.start(first + j) - rows.start(first), rows.size(first + j));
    }
}

void EventCall::put_unknown(int64_t from, int64_t number) const {
    if (posterior) std::fill_n(posterior + from, number, not_a_number);
    if (gradient && input.wide) std::fill_n(static_cast<double*>(gradient) + from, number, not_a_number);
    if (gradient && !input.wide)
        std::fill_n(static_cast<float*>(gradient) + from, number, static_cast<float>(not_a_number));
}

Case case_of(Wanted wanted, int64_t size, bool broken) {
    if (broken) return Case::broken;
    if (wanted.low > std::min(wanted.high, size) || wanted.high < 0) return Case::impossible;
    if (wanted.low <= 0 && wanted.high >= size) return Case::anything;
    if (wanted.high == 0) return Case::none;
    return wanted.low == size ? Case::all : Case::open;
}

Sight::Sight(const Tilted& view, Wanted wanted)
    : tilt(view.tilt),
      reach(radius(view.moments.variance, wanted.low == wanted.high ? 1.0 : negligible)),
      first(wanted.low),
      anchor(view.tilt > 0.0 ? wanted.low : wanted.high) {
    int64_t last = wanted.high;
    if (first < last) {
        first = std::max(first, static_cast<int64_t>(std::ceil(view.moments.mean - reach)));
        last = std::min(last, static_cast<int64_t>(std::floor(view.moments.mean + reach)));
    }
    number = last - first + 1;
}

double Sight::weigh(const Kernels& kernels, const Spectrum& spectrum, double* weights) const {
    double* probs = weights + number;
    kernels.inverse(spectrum, first, number, probs);
    leaning_weights(tilt, anchor, first, number, 1, weights);
    double total = 0.0;
    for (int64_t k = 0; k < number; ++k) total += probs[k] * weights[k];
    for (int64_t k = 0; k < number; ++k) weights[k] /= total;
    return total;
}

void EventSolver::run(int64_t first, int64_t last) {
    first_ = first;
    bags_.take(kernels_, call_.input, first, last);
    const auto bags = static_cast<std::size_t>(last - first);
    if (call_.of_instances()) posterior_.reserve(bags_.instances());
    totals_.resize(bags);
    tilts_.assign(bags, 0.0);
    terms_.assign(bags, 0.0);
    effects_.assign(bags, 0.0);
    groups_.clear(last - first);
    const double* prior = bags_.p();
    if (call_.sigma) {
        bags_.make_movable();
        std::copy_n(prior, bags_.instances(), prior_.reserve(bags_.instances()));
        prior = prior_.data();
        if (call_.by_sigma) std::fill(call_.by_sigma + first, call_.by_sigma + last, 0.0);
    }
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        const int64_t people = bags_.bag(j).people;
        const Wanted w = asked(j);
        const Case which = case_of(w, people, bags_.broken(j));
        const auto [low, high] = w.possible(people);
        if (call_.sigma && (which == Case::open || which == Case::none || which == Case::all))
            effects_[j] = add_effect(j, low);
        const Bag bag = bags_.bag(j);
        if (which != Case::open)
            closed_form(j, which);
        else if (!bag.copies && suits_recursion(bag.size, low, high))
            groups_.add(j, bag.p, bag.q, bag.size, low, high);
        else
            large_bag(j, {low, high});
    }
    small_bags();
    kernels_.log(totals_.data(), bags_.bags());
    for (int64_t j = 0; j < bags_.bags(); ++j) call_.put_value(first_ + j, totals_[j] + terms_[j] + effects_[j]);
    if (call_.of_instances())
        call_.put_instances(kernels_, call_.input, 0, first, last, bags_, posterior_.data(), prior);
}

// Moves a bag to its likeliest shift with this count. What all other shifts add to log P there.
double EventSolver::add_effect(int64_t j, int64_t count) {
    const double sigma = call_.sigma[first_ + j];
    if (!(sigma > 0.0)) return 0.0;
    const Tilted centred = effect_.centre(bags_.bag(j), static_cast<double>(count), sigma);
    bags_.move(j, centred.tilt, centred.p, centred.q);
    const double value = effect_.integrate(bags_.bag(j), centred.moments.variance);
    if (call_.of_instances() || call_.by_sigma) {
        const double derivative = effect_.derivatives(bags_.bag(j), prior_.data() + bags_.start(j));
        if (call_.by_sigma) call_.by_sigma[first_ + j] = call_.weight * derivative;
    }
    return value;
}

// log P is known: it is all in the term that is added to a logarithm of one.
void EventSolver::known(int64_t j, double log_value) {
    totals_[j] = 1.0;
    terms_[j] = log_value;
}

// All labels of the bag are the same: log prod_i q_i or log prod_i p_i. A product that is neither close to one, where
// its logarithm would lose digits, nor too small has that logarithm to rounding. Otherwise, and for one instance, whose
// loss is cross-entropy to the last digit, logarithms are summed.
void EventSolver::alike(int64_t j, const Bag& bag, bool none) {
    const double* factors = none ? bag.q : bag.p;
    double product = bag.size > 1 ? 1.0 : 0.0;
    for (int64_t i = 0; i < bag.size && product > safe_total; ++i) product *= factors[i];
    if (!bag.copies && product > safe_total && product < 0.5)
        totals_[j] = product;
    else
        known(j, kernels_.log_sigmoid(bag.z, bag.copies, bag.size, none ? -1.0 : 1.0));
}

void EventSolver::closed_form(int64_t j, Case which) {
    const Bag bag = bags_.bag(j);
    if (which == Case::none || which == Case::all)
        alike(j, bag, which == Case::none);
    else
        known(j, which == Case::broken ? not_a_number : which == Case::impossible ? -infinity : 0.0);
    if (!call_.of_instances()) return;
    double* out = posterior_.data() + bags_.start(j);
    if (which == Case::none || which == Case::all)
        std::fill_n(out, bag.size, which == Case::none ? 0.0 : 1.0);
    else
        std::copy_n(bag.p, bag.size, out);
}

// First without a tilt; then, tilted, those whose interval proves too unlikely for that.
void EventSolver::small_bags() {
    const int lanes = kernels_.lanes;
    const auto visit = [&](const Group& group, const Member* members, int number, const double* probs,
                           double* weights) {
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
            if (call_.of_instances()) out[l] = posterior_.data() + bags_.start(member.bag);
        }
        if (!call_.of_instances()) return;
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
        const Tilted plain = untilted(kernels_, bag);
        const Tilted view =
            solve_tilt(kernels_, bag, w.nearest(plain.moments.mean), plain, scratch, scratch + bag.size);
        tilts_[j] = view.tilt;
        terms_[j] = view.back(view.tilt > 0.0 ? w.low : w.high);
        groups_.add(j, view.p, view.q, bag.size, w.low, w.high);
        scratch += 2 * bag.size;
    }
    groups_.run(visit);
}

void EventSolver::large_bag(int64_t j, Wanted w) {
    const Bag bag = bags_.bag(j);
    const Tilted plain = untilted(kernels_, bag);
    double* scratch = tilted_.reserve(2 * bag.size);
    const Tilted view = solve_tilt(kernels_, bag, w.nearest(plain.moments.mean), plain, scratch, scratch + bag.size);
    const Sight sight(view, w);
    Spectrum spectrum;
    look(kernels_, view, bag, sight.reach, spectrum);
    double* weights = weights_.reserve(2 * sight.number);
    totals_[j] = sight.weigh(kernels_, spectrum, weights);
    terms_[j] = view.back(sight.anchor);
    if (!call_.of_instances()) return;
    const Sides sides = kernels_.make_sides(spectrum, sight.first, sight.number, weights);
    double* out = posterior_.data() + bags_.start(j);
    std::fill_n(out, bag.size, 0.0);
    kernels_.pull(view.p, view.q, bag.size, view.moments.widest, spectrum, sides, out);
}

}  // namespace kofn
