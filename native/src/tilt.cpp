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
double between_order_statistics(std::vector<double> z, double target) {
    const auto size = static_cast<int64_t>(z.size());
    const auto rank = std::clamp<int64_t>(std::llround(target), 1, std::max<int64_t>(1, size - 1));
    const auto above = z.begin() + (rank - 1);
    std::nth_element(z.begin(), above, z.end(), [](double a, double b) { return a > b; });
    const double below = rank < size ? *std::max_element(above + 1, z.end()) : *above;
    return -(*above / 2 + below / 2);
}

bool near_enough(const Moments& moments, double target) {
    const double gap = moments.mean - target;
    return gap * gap <= moments.variance + 1e-18;  // the 1e-18 lets saturated bags, of variance 0, pass
}

// A bag in one piece, and room for its tilted probabilities.
class Whole final : public Tiltable {
public:
    Whole(const Kernels& kernels, const Bag& bag, double* p, double* q) : kernels_(kernels), bag_(bag), p_(p), q_(q) {}
    int64_t size() const override { return bag_.size; }
    Range range() override { return kernels_.range(bag_.z, bag_.size); }
    Tilted at(double tilt) override { return tilted(kernels_, bag_, tilt, p_, q_); }
    std::vector<double> logits() override { return {bag_.z, bag_.z + bag_.size}; }

private:
    const Kernels& kernels_;
    const Bag& bag_;
    double *p_, *q_;
};

}  // namespace

Tilted untilted(const Kernels& kernels, const Bag& bag) {
    return {0.0, bag.p, bag.q, kernels.moments(bag.p, bag.q, bag.size)};
}

Tilted tilted(const Kernels& kernels, const Bag& bag, double tilt, double* p, double* q) {
    return {tilt, p, q, kernels.tilt(bag.z, bag.p, bag.q, bag.size, tilt, p, q)};
}

Tilted solve_tilt(const Kernels& kernels, const Bag& bag, double target, const Tilted& start, double* p, double* q) {
    Whole whole(kernels, bag, p, q);
    return solve_tilt(whole, target, start);
}

Tilted solve_tilt(Tiltable& bag, double target, const Tilted& start) {
    // Half a count inside [0, size] stands for the ends, whose tilt is infinite.
    const double size = static_cast<double>(bag.size());
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
        const std::vector<double> logits = step == restart_step ? bag.logits() : std::vector<double>();
        if (!logits.empty()) {
            proposal = between_order_statistics(logits, target);
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
