#include "tilt.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kofn {
namespace {

constexpr int max_steps = 100;  // Newton needs 2 to 5; bisecting a bracket of logits up to 2e4 fewer than 60
constexpr int restart_step = 8;

// Minus the midpoint of the s-th and (s + 1)-th largest logit: right to a few units for any logits.
//
// There, s instances have p >= 1/2 and the others p <= 1/2, so |mean - s| <= sum min(p, q) <= 2 variance: Newton sees a
// slope, even when logits in the thousands make the mean a staircase everywhere else.
double between_order_statistics(const Bag& bag, double target) {
    std::vector<double> z(bag.z, bag.z + bag.size);
    const auto rank = std::clamp<int64_t>(std::llround(target), 1, std::max<int64_t>(1, bag.size - 1));
    const auto above = z.begin() + (rank - 1);
    std::nth_element(z.begin(), above, z.end(), [](double a, double b) { return a > b; });
    const double below = rank < bag.size ? *std::max_element(above + 1, z.end()) : *above;
    return -(*above / 2 + below / 2);
}

bool near_enough(const Moments& moments, double target) {
    const double gap = moments.mean - target;
    return gap * gap <= moments.variance + 1e-18;  // the 1e-18 lets saturated bags, of variance 0, pass
}

}  // namespace

Tilted untilted(const Kernels& kernels, const Bag& bag) {
    return {0.0, bag.p, bag.q, kernels.moments(bag.p, bag.q, bag.size)};
}

Tilted tilted(const Kernels& kernels, const Bag& bag, double tilt, double* p, double* q) {
    return {tilt, p, q, kernels.tilt(bag.z, bag.p, bag.q, bag.size, tilt, p, q)};
}

Tilted solve_tilt(const Kernels& kernels, const Bag& bag, double target, const Tilted& start, double* p, double* q) {
    // Half a count inside [0, size] stands for the ends, whose tilt is infinite.
    const double size = static_cast<double>(bag.size);
    target = std::clamp(target, 0.5, size - 0.5);
    if (near_enough(start.moments, target)) return start;
    // All logits equal to c would give t = log_odds - c exactly, hence the bracket from the extreme logits.
    const double log_odds = std::log(target / (size - target));
    const Range range = kernels.range(bag.z, bag.size);
    double low = log_odds - range.high, high = log_odds - range.low;
    Tilted at = start;
    if (!(low < at.tilt && at.tilt < high)) at = tilted(kernels, bag, low / 2 + high / 2, p, q);
    for (int step = 0; step < max_steps && low < high && !near_enough(at.moments, target); ++step) {
        (at.moments.mean > target ? high : low) = at.tilt;
        double proposal;
        if (step == restart_step) {
            proposal = between_order_statistics(bag, target);
        } else {
            // Newton on the log-odds of the mean rather than on the mean: exact at once for equal logits.
            const double mean = at.moments.mean, room = mean * (size - mean);
            const double miss = log_odds - std::log(mean / (size - mean));
            proposal = at.tilt + miss * room / (size * at.moments.variance);
        }
        if (!(low < proposal && proposal < high)) proposal = low / 2 + high / 2;
        at = tilted(kernels, bag, proposal, p, q);
    }
    return at;
}

}  // namespace kofn
