#include "tilt.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace kofn {
namespace {

constexpr int max_steps = 100;  // Newton needs 2 to 5; bisecting a bracket of logits up to 2e4 fewer than 60
constexpr int restart_step = 8;

// Minus the midpoint of the s-th and (s + 1)-th largest logit: right to a few units for any logits.
//
// There, s people have p >= 1/2 and the others p <= 1/2, so |mean - s| <= sum min(p, q) <= 2 variance: Newton sees a
// slope, even when logits in the thousands make the mean a staircase everywhere else.
double between_order_statistics(std::vector<std::pair<double, double>> rows, double target) {
    std::sort(rows.begin(), rows.end(), std::greater<>());
    const double rank = std::max(1.0, std::round(target));
    std::size_t k = 0;
    double people = rows[0].second;
    while (people < rank && k + 1 < rows.size()) people += rows[++k].second;
    const std::size_t next = people > rank ? k : std::min(k + 1, rows.size() - 1);
    return -(rows[k].first / 2 + rows[next].first / 2);
}

bool near_enough(const Moments& moments, double target) {
    const double gap = moments.mean - target;
    return gap * gap <= moments.variance + 1e-18;  // the 1e-18 lets saturated bags, of variance 0, pass
}

}  // namespace

Tilted untilted(const Kernels& kernels, const Bag& bag) {
    return {0.0, bag.p, bag.q, kernels.moments(bag.p, bag.q, bag.copies, bag.size)};
}

Tilted tilted(const Kernels& kernels, const Bag& bag, double tilt, double* p, double* q) {
    if (bag.copies) return {tilt, p, q, kernels.tilt_copies(bag.z, bag.p, bag.q, bag.copies, bag.size, tilt, p, q)};
    return {tilt, p, q, kernels.tilt(bag.z, bag.p, bag.q, bag.size, tilt, p, q)};
}

Tilted solve_tilt(const Kernels& kernels, const Bag& bag, double target, const Tilted& start, double* p, double* q) {
    const auto range = [&] { return kernels.range(bag.z, bag.size); };
    const auto at = [&](double tilt) { return tilted(kernels, bag, tilt, p, q); };
    const auto rows = [&] {
        std::vector<std::pair<double, double>> all(static_cast<std::size_t>(bag.size));
        for (int64_t i = 0; i < bag.size; ++i)
            all[static_cast<std::size_t>(i)] = {bag.z[i], bag.copies ? bag.copies[i] : 1.0};
        return all;
    };
    return solve_tilt({bag.people, std::ref(range), std::ref(at), std::ref(rows)}, target, start);
}

Tilted solve_tilt(const Tiltable& bag, double target, const Tilted& start) {
    // Half a count inside [0, size] stands for the ends, whose tilt is infinite.
    const double size = static_cast<double>(bag.people);
    target = std::clamp(target, 0.5, size - 0.5);
    if (near_enough(start.moments, target)) return start;
    // All logits equal to c would give t = log_odds - c exactly, hence the bracket from the extreme logits.
    const double log_odds = std::log(target / (size - target));
    const Range range = bag.range();
    double low = log_odds - range.high, high = log_odds - range.low;
    Tilted at = start;
    if (!(low < at.tilt && at.tilt < high)) at = bag.at(low / 2 + high / 2);
    for (int step = 0; step < max_steps && low < high && !near_enough(at.moments, target); ++step) {
        (at.moments.mean > target ? high : low) = at.tilt;
        double proposal = low / 2 + high / 2;
        std::vector<std::pair<double, double>> rows;
        if (step == restart_step) rows = bag.rows();
        if (!rows.empty()) {
            proposal = between_order_statistics(std::move(rows), target);
        } else if (step <= restart_step || step % 2 == 0) {  // halves in between, which come to an end for any logits
            // Newton on the log-odds of the mean rather than on the mean: exact at once for equal logits.
            const double mean = at.moments.mean, room = mean * (size - mean);
            const double miss = log_odds - std::log(mean / (size - mean));
            proposal = at.tilt + miss * room / (size * at.moments.variance);
        }
        if (!(low < proposal && proposal < high)) proposal = low / 2 + high / 2;
        at = bag.at(proposal);
    }
    return at;
}

}  // namespace kofn
