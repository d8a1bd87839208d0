// P(K = k) is the coefficient of prod z_c^{k_c} in prod_i sum_c p_ic z_c. Bags with few states are told by recursion,
// those of the same counts side by side; large bags of up to five classes by their characteristic function, tilted
// until the counts are the mean. A probability too small for float64 is told by recursion after a tilt, too.
#include "class_counts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <type_traits>

namespace kofn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double safe_total = 1e-200;  // has lost nothing to underflow: all terms are positive
constexpr double smallest = std::numeric_limits<double>::min();

constexpr double states_side_by_side = 512;   // a vector of bags for each: more would not fit into the cache
constexpr double most_states = 4294967296.0;  // of one table, 32 GB: LARGEST_TABLE in classes/_cost.py
constexpr double cells_kept = 1 << 17;        // of the tables of one bag, before some are computed twice
// A frequency costs an instance about as much as so many states for each class.
constexpr double states_per_frequency = 3.0;
constexpr double confirmed = 1e8;  // cells of a table that are spent on confirming that counts are impossible

// Frequencies that carry a bag of so many classes, to begin with: fewer states than that are never worth a tilt.
double usual_frequencies(int64_t classes) {
    constexpr double usual[] = {0, 0, 24, 200, 2000, 20000};
    return usual[classes];
}

}  // namespace

void ClassSolver::run(int64_t first, int64_t last) {
    take(first, last);
    std::vector<const Bag*> small;
    for (const Bag& bag : bags_) {
        if (closed_form(bag)) continue;
        if (bag.states <= states_side_by_side)
            small.push_back(&bag);
        else if (!by_frequencies(bag))
            alone(bag);
    }
    std::sort(small.begin(), small.end(), [](const Bag* a, const Bag* b) { return a->key < b->key; });
    const auto alike = [&](const Bag& a, const Bag& b) {
        return a.key == b.key && a.classes == b.classes &&
               std::equal(counts_.begin() + a.order, counts_.begin() + a.order + a.classes, counts_.begin() + b.order);
    };
    for (std::size_t at = 0; at < small.size();) {
        std::size_t end = at + 1;
        while (end < small.size() && end - at < static_cast<std::size_t>(kernels_.lanes) &&
               alike(*small[at], *small[end]))
            ++end;
        if (end - at > 1)
            side_by_side(small.data() + at, static_cast<int>(end - at));
        else if (!by_frequencies(*small[at]))
            alone(*small[at]);
        at = end;
    }
}

// Softmax of all instances of the run, and which of them are not there.
void ClassSolver::take_probabilities(int64_t first, int64_t last) {
    const Input& input = call_.input;
    const int64_t classes = call_.classes, n = input.start(last) - input.start(first),
                  from = input.start(first) * classes;
    begin_ = input.start(first);
    double* p = probabilities_.reserve(n * classes);
    if (input.wide)
        std::copy_n(static_cast<const double*>(input.logits) + from, n * classes, p);
    else
        std::copy_n(static_cast<const float*>(input.logits) + from, n * classes, p);
    absent_any_ = false;
    for (int64_t i = 0; i < n; ++i) {
        double* row = p + i * classes;
        double top = -infinity;
        bool broken = false;
        for (int64_t c = 0; c < classes; ++c) {
            broken |= std::isnan(row[c]);
            top = std::max(top, row[c]);
        }
        if (std::isfinite(top) && !broken) {
            for (int64_t c = 0; c < classes; ++c) row[c] -= top;
        } else if (broken) {
            std::fill_n(row, classes, not_a_number);
        } else if (top == infinity) {  // a certain class; two of them are a contradiction
            const bool one = std::count(row, row + classes, infinity) == 1;
            for (int64_t c = 0; c < classes; ++c) row[c] = !one ? not_a_number : row[c] == infinity ? 0.0 : -infinity;
        } else {
            if (!absent_any_) absent_.assign(static_cast<std::size_t>(n), 0);
            absent_any_ = true;
            absent_[i] = 1;
        }
    }
    kernels_.exp(p, n * classes);
    for (int64_t i = 0; i < n; ++i) {
        double* row = p + i * classes;
        double sum = 0.0;
        for (int64_t c = 0; c < classes; ++c) sum += row[c];
        const double scale = sum == 0.0 ? 0.0 : 1.0 / sum;
        for (int64_t c = 0; c < classes; ++c) row[c] *= scale;
    }
}

void ClassSolver::take(int64_t first, int64_t last) {
    take_probabilities(first, last);
    const int64_t classes = call_.classes;
    bags_.clear();
    order_.clear();
    counts_.clear();
    for (int64_t j = first; j < last; ++j) {
        const int64_t* k = call_.counts + j * classes;
        const int64_t all = call_.input.size(j);
        int64_t size = all;
        if (absent_any_)
            for (int64_t i = 0; i < all; ++i) size -= absent(j, i);
        bool broken = false;
        const double* p = probabilities(j);
        for (int64_t i = 0; i < all; ++i) broken |= std::isnan(p[i * classes]);
        int64_t left = size;
        for (int64_t c = 0; c < classes && left >= 0; ++c) left = k[c] < 0 || k[c] > left ? -1 : left - k[c];
        if (broken || left != 0) {
            write_value(j, broken ? not_a_number : -infinity);
            write_prior(j, broken ? not_a_number : 0.0);
            continue;
        }
        Bag bag{j, size, 0, 1.0, order_.size(), 1469598103934665603u};
        for (int64_t c = 0; c < classes; ++c) {
            if (k[c] == 0) continue;
            order_.push_back(c);
            ++bag.classes;
        }
        const auto begin = order_.begin() + static_cast<int64_t>(bag.order);
        std::stable_sort(begin, order_.end(), [&](int64_t a, int64_t b) { return k[a] > k[b]; });
        for (auto c = begin; c != order_.end(); ++c) {
            counts_.push_back(k[*c]);
            bag.key = (bag.key ^ static_cast<uint64_t>(k[*c])) * 1099511628211u;
            if (c != begin) bag.states *= static_cast<double>(k[*c] + 1);
        }
        bags_.push_back(bag);
    }
}

// The probabilities of a bag's own instances and classes, every `step` numbers.
void ClassSolver::gather(const Bag& bag, double* out, int64_t step) const {
    const double* p = probabilities(bag.number);
    const int64_t* order = order_.data() + bag.order;
    for (int64_t i = 0, all = call_.input.size(bag.number); i < all; ++i) {
        if (absent(bag.number, i)) continue;
        for (int64_t c = 0; c < bag.classes; ++c, out += step) *out = p[i * call_.classes + order[c]];
    }
}

// Log-probabilities of a bag's own instances and classes, right however small: x - top + log(1 - the others' share).
const double* ClassSolver::logs(const Bag& bag) {
    const Input& input = call_.input;
    const int64_t classes = call_.classes;
    const int64_t* order = order_.data() + bag.order;
    double* out = logs_.reserve(std::max<int64_t>(1, bag.size * bag.classes));
    for (int64_t i = 0, all = input.size(bag.number); i < all; ++i) {
        if (absent(bag.number, i)) continue;
        const int64_t at = (input.start(bag.number) + i) * classes;
        const auto logit = [&](int64_t c) {
            return input.wide ? static_cast<const double*>(input.logits)[at + c]
                              : static_cast<double>(static_cast<const float*>(input.logits)[at + c]);
        };
        int64_t top = 0;
        for (int64_t c = 1; c < classes; ++c)
            if (logit(c) > logit(top)) top = c;
        const double* p = probabilities(bag.number) + i * classes;
        double rest = 0.0;
        for (int64_t c = 0; c < classes; ++c) rest += c == top ? 0.0 : p[c];
        const double log_top = rest < 0.5 ? std::log1p(-rest) : std::log(p[top]);
        for (int64_t c = 0; c < bag.classes; ++c, ++out) {
            const bool certain = logit(top) == infinity;  // then the others are impossible
            *out = order[c] == top ? log_top : certain ? -infinity : (logit(order[c]) - logit(top)) + log_top;
        }
    }
    return logs_.data();
}

// One class, or none: the labels are known.
bool ClassSolver::closed_form(const Bag& bag) {
    if (bag.classes > 1) return false;
    const double* each = logs(bag);
    double value = 0.0;
    for (int64_t i = 0; i < bag.size; ++i) value += each[i];
    if (value == -infinity) {
        impossible(bag);
        return true;
    }
    write_value(bag.number, value);
    if (!instances_wanted()) return true;
    double* joint = joint_.reserve(std::max<int64_t>(bag.size, 1));
    std::fill_n(joint, bag.size, 1.0);
    write_instances(bag, joint, 1, 1.0);
    return true;
}

bool ClassSolver::by_frequencies(const Bag& bag) {
    if (bag.classes > ClassFrequencies::most_classes || bag.states < usual_frequencies(bag.classes)) return false;
    const int64_t* counts = counts_.data() + bag.order;
    const TiltedClasses& view = tilt_.solve(logs(bag), bag.size, bag.classes, counts);
    const double most = std::min(bag.states, most_states) / states_per_frequency;
    if (!grid_.choose(view, bag.size, bag.classes, counts, kernels_.lanes, most)) return false;
    double* joint = instances_wanted() ? joint_.reserve(bag.size * bag.classes) : nullptr;
    double* work = work_.reserve(class_fourier_work(kernels_.lanes, bag.size, bag.classes, grid_.frequencies().number));
    const double total = kernels_.class_fourier(view.p, bag.size, bag.classes, grid_.frequencies(), joint, work);
    // No tilt makes the counts likely: they are impossible. A table that can be had confirms it.
    if (!(total > 1e-12)) {
        if (bag.states * static_cast<double>(bag.size) <= confirmed) return false;
        impossible(bag);
        return true;
    }
    write_value(bag.number, std::log(total) + view.back);
    if (joint) write_instances(bag, joint, 1, 1.0 / total);
    return true;
}

// The table of a bag, or of several alike. All of its rows are kept if they fit into the cache and are asked for again.
ClassTable ClassSolver::shape(const Bag& bag) {
    if (bag.states > most_states) throw std::bad_alloc();  // before its number is taken for a whole one
    const int64_t* counts = counts_.data() + bag.order;
    strides_.assign(static_cast<std::size_t>(bag.classes), 1);
    for (int64_t c = 2; c < bag.classes; ++c) strides_[c] = strides_[c - 1] * (counts[c - 1] + 1);
    const bool all = instances_wanted() && bag.states * static_cast<double>(bag.size) <= cells_kept;
    const int64_t stretch = all ? bag.size : static_cast<int64_t>(std::sqrt(static_cast<double>(bag.size)));
    const auto states = static_cast<int64_t>(bag.states);
    return {bag.size, bag.classes, states, std::max<int64_t>(1, stretch), counts, strides_.data()};
}

double ClassSolver::table(const Bag& bag, const double* p, double* joint) {
    const ClassTable of = shape(bag);
    double total = 0.0;
    kernels_.class_table_one(of, p, &total, joint, work_.reserve(class_table_work(of.size, of.states, of.stretch)));
    return total;
}

void ClassSolver::alone(const Bag& bag) {
    double* p = p_.reserve(bag.size * bag.classes);
    double* joint = instances_wanted() ? joint_.reserve(bag.size * bag.classes) : nullptr;
    gather(bag, p, 1);
    const double total = table(bag, p, joint);
    if (!(total > safe_total)) return tilted_table(bag);
    write_value(bag.number, std::log(total));
    if (joint) write_instances(bag, joint, 1, 1.0 / total);
}

void ClassSolver::tilted_table(const Bag& bag) {
    const TiltedClasses& view = tilt_.solve(logs(bag), bag.size, bag.classes, counts_.data() + bag.order);
    double* joint = instances_wanted() ? joint_.reserve(bag.size * bag.classes) : nullptr;
    const double total = table(bag, view.p, joint);
    if (!(total > 0.0)) return impossible(bag);
    write_value(bag.number, std::log(std::max(total, smallest)) + view.back);
    if (joint) write_instances(bag, joint, 1, 1.0 / total);
}

void ClassSolver::side_by_side(const Bag* const* bags, int number) {
    const Bag& first = *bags[0];
    const int lanes = kernels_.lanes;
    const ClassTable of = shape(first);
    const int64_t cells = first.size * first.classes;
    double* p = p_.reserve(cells * lanes);
    for (int l = 0; l < lanes; ++l) gather(*bags[std::min(l, number - 1)], p + l, lanes);
    double* joint = instances_wanted() ? joint_.reserve(cells * lanes) : nullptr;
    alignas(64) double totals[Group::max_lanes];
    kernels_.class_table_many(of, p, totals, joint,
                              work_.reserve(lanes * class_table_work(of.size, of.states, of.stretch)));
    std::vector<const Bag*> again;
    for (int l = 0; l < number; ++l) {
        if (!(totals[l] > safe_total)) {
            again.push_back(bags[l]);
            continue;
        }
        write_value(bags[l]->number, std::log(totals[l]));
        if (joint) write_instances(*bags[l], joint + l, lanes, 1.0 / totals[l]);
    }
    for (const Bag* bag : again) tilted_table(*bag);
}

void ClassSolver::write_value(int64_t j, double value) const {
    if (value > 0.0) value = 0.0;  // rounding only; keeps a NaN
    if (call_.input.wide)
        static_cast<double*>(call_.value)[j] = value;
    else
        static_cast<float*>(call_.value)[j] = static_cast<float>(value);
}

void ClassSolver::impossible(const Bag& bag) const {
    write_value(bag.number, -infinity);
    write_prior(bag.number, 0.0);
}

// Where counts say nothing: posteriors are priors.
void ClassSolver::write_prior(int64_t j, double gradient) const {
    const int64_t from = call_.input.start(j) * call_.classes, number = call_.input.size(j) * call_.classes;
    const double* p = probabilities(j);
    for (int64_t k = 0; k < number; ++k) {
        if (call_.posterior) call_.posterior[from + k] = p[k] + gradient;
        if (call_.gradient && call_.input.wide) static_cast<double*>(call_.gradient)[from + k] = gradient;
        if (call_.gradient && !call_.input.wide)
            static_cast<float*>(call_.gradient)[from + k] = static_cast<float>(gradient);
    }
}

void ClassSolver::write_instances(const Bag& bag, const double* joint, int64_t step, double scale) const {
    const int64_t classes = call_.classes, from = call_.input.start(bag.number) * classes;
    const double* p = probabilities(bag.number);
    const int64_t* order = order_.data() + bag.order;
    const auto write = [&](auto* gradient) {
        using Number = std::remove_pointer_t<decltype(gradient)>;
        for (int64_t i = 0, all = call_.input.size(bag.number); i < all; ++i) {
            const int64_t at = from + i * classes;
            const double* prior = p + i * classes;
            if (gradient)
                for (int64_t c = 0; c < classes; ++c) gradient[at + c] = static_cast<Number>(-prior[c]);
            if (call_.posterior) std::fill_n(call_.posterior + at, classes, 0.0);
            if (absent(bag.number, i)) continue;
            for (int64_t c = 0; c < bag.classes; ++c, joint += step) {
                const double value = std::clamp(*joint * scale, 0.0, 1.0);
                if (gradient) gradient[at + order[c]] = static_cast<Number>(value - prior[order[c]]);
                if (call_.posterior) call_.posterior[at + order[c]] = value;
            }
        }
    };
    if (call_.input.wide)
        write(static_cast<double*>(call_.gradient));
    else
        write(static_cast<float*>(call_.gradient));
}

}  // namespace kofn
