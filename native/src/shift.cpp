// log E_u[e^{u s - K(u)}], u ~ N(0, sigma^2), K(u) = sum_i log(q_i + p_i e^u): what a bag effect adds to log P(S = s).
//
// With u = sigma z the integrand is e^{g(z)}, g(z) = sigma z s - K(sigma z) - z^2 / 2, g' = sigma (s - E[S | u]) - z and
// g'' = -sigma^2 var(S | u) - 1. It is log-concave and analytic, and the trapezoid rule converges exponentially: halving
// the step squares the error. So nodes are doubled until every other of them gives the same to `tolerance`, which leaves an
// error of about its square, below 1e-9. (counts/_bag_effect.py says the same in torch.)
#include "shift.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kofn {
namespace {

constexpr double drop = 37.0;  // the integrand is summed where it is above e^-drop of its largest value
constexpr double tolerance = 1e-6;
constexpr int64_t first_steps = 32, most_steps = 4096;
constexpr int most_searches = 60;
constexpr double far = 300.0;  // of a shift this large e^-|u| and p may both be 0, and each node is looked at by itself
constexpr double log_sqrt_2pi = 0.91893853320467274178;
const double widest = std::sqrt(2 * drop);  // from the mode to there, at most, because g'' <= -1

}  // namespace

void ShiftSolver::run(int64_t first, int64_t last) {
    first_ = first;
    bags_.take(kernels_, call_.input, first, last);
    const int64_t begin = call_.input.start(first);
    if (call_.slope) std::fill(call_.slope + begin, call_.slope + call_.input.start(last), 0.0);
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        const Bag now = bags_.bag(j);
        const double sigma = call_.sigma[first + j];
        const int64_t count = call_.counts[first + j] - bags_.ones(j);
        double value = 0.0;
        if (call_.by_sigma) call_.by_sigma[first + j] = 0.0;
        if (bags_.broken(j) || std::isnan(sigma))
            value = std::numeric_limits<double>::quiet_NaN();
        else if (call_.counts[first + j] >= 0 && count >= 0 && count <= now.size && sigma > 0.0)
            value = bag(j, now, static_cast<double>(count), sigma);
        call_.value[first + j] = value;
    }
}

ShiftSolver::Point ShiftSolver::at(const Bag& bag, double count, double sigma, double z) {
    double* p = tilted_.reserve(2 * bag.size);
    const Tilted view = tilted(kernels_, bag, sigma * z, p, p + bag.size);
    return {z, -view.back(static_cast<int64_t>(count)) - z * z / 2, sigma * (count - view.moments.mean) - z,
            -sigma * sigma * view.moments.variance - 1.0};
}

// Near the mode of g: Newton's method, by halves where it would leave the interval that holds it, or where a step is not
// half as long as the one before: else two steps may follow each other in a circle. A tenth of the width of the integrand
// is near enough, because all that is wanted is how high it is.
ShiftSolver::Point ShiftSolver::mode(const Bag& bag, double count, double sigma) {
    double low = sigma * (count - static_cast<double>(bag.size)), high = sigma * count;  // 0 <= E[S | u] <= n
    const Moments plain = kernels_.moments(bag.p, bag.q, bag.size);
    Point here{0.0, 0.0, sigma * (count - plain.mean), -sigma * sigma * plain.variance - 1.0};
    double moved = high - low;
    for (int step = 0; step < most_searches && here.slope * here.slope > -0.01 * here.curvature; ++step) {
        (here.slope > 0.0 ? low : high) = here.z;
        double next = here.z - here.slope / here.curvature;
        if (!(low < next && next < high && 2 * std::abs(next - here.z) < moved)) next = low / 2 + high / 2;
        moved = std::abs(next - here.z);
        here = at(bag, count, sigma, next);
    }
    return here;
}

// Where g has fallen by `drop`. It is concave: Newton's steps from outside stay outside.
double ShiftSolver::end(const Bag& bag, double count, double sigma, const Point& mode, double side) {
    double z = mode.z + side * widest;
    for (int step = 0; step < most_searches; ++step) {
        const Point here = at(bag, count, sigma, z);
        const double excess = here.g - (mode.g - drop);  // below zero outside
        if (!(excess < -0.1 * drop)) break;
        z -= excess / here.slope;
    }
    return z;
}

double ShiftSolver::bag(int64_t j, const Bag& bag, double count, double sigma) {
    const Point top = mode(bag, count, sigma);
    const double low = end(bag, count, sigma, top, -1.0), high = end(bag, count, sigma, top, 1.0);
    double value = 0.0;
    for (int64_t steps = first_steps; steps <= most_steps; steps *= 2) {
        value = integrate(bag, count, sigma, low, high, steps);
        double all = 0.0, even = 0.0;
        for (int64_t k = 0; k <= steps; ++k) {
            all += terms_[k];
            if (k % 2 == 0) even += terms_[k];
        }
        if (!(std::abs(2 * even - all) > tolerance * all)) break;
    }
    if (!call_.slope) return value;
    // d/dx_i = p_i - E[sigmoid(x_i + u)] and d/d sigma = E[z (s - E[S | u])], under the weights of the nodes.
    double weight = 0.0, lean = 0.0;
    for (int64_t k = 0; k < shifts_; ++k) weight += terms_[k];
    for (int64_t k = 0; k < shifts_; ++k) {
        terms_[k] /= weight;
        leaning_[k] = terms_[k] * z_[k];
        lean += leaning_[k];
    }
    double* means = means_.reserve(bag.size);
    double leaning = 0.0;
    if (sigma * std::max(std::abs(low), std::abs(high)) <= far) {
        leaning = kernels_.shift_means(bag.p, bag.q, bag.size, a_, b_, terms_, leaning_, shifts_, means);
    } else {
        std::fill_n(means, bag.size, 0.0);
        double* p = tilted_.reserve(2 * bag.size);
        for (int64_t k = 0; k < shifts_; ++k) {
            leaning += leaning_[k] * tilted(kernels_, bag, sigma * z_[k], p, p + bag.size).moments.mean;
            for (int64_t i = 0; i < bag.size; ++i) means[i] += terms_[k] * p[i];
        }
    }
    call_.by_sigma[first_ + j] = count * lean - leaning;
    double* out = call_.slope + call_.input.start(first_);
    for (int64_t i = 0; i < bag.size; ++i) out[bags_.source(bags_.start(j) + i)] = bag.p[i] - means[i];
    return value;
}

// The log of the integral by the trapezoid rule, and in terms_ what each node adds to it, but for a factor.
double ShiftSolver::integrate(const Bag& bag, double count, double sigma, double low, double high, int64_t steps) {
    shifts_ = (steps + kernels_.lanes) / kernels_.lanes * kernels_.lanes;  // steps + 1 nodes, filled up to whole vectors
    double* room = nodes_.reserve(5 * shifts_);
    z_ = room, a_ = room + shifts_, b_ = a_ + shifts_, terms_ = b_ + shifts_, leaning_ = terms_ + shifts_;
    const double step = (high - low) / static_cast<double>(steps);
    const double reach = sigma * std::max(std::abs(low), std::abs(high));
    for (int64_t k = 0; k < shifts_; ++k) {
        z_[k] = low + step * static_cast<double>(std::min(k, steps));
        a_[k] = std::min(0.0, -sigma * z_[k]);
        b_[k] = std::min(0.0, sigma * z_[k]);
    }
    kernels_.exp(a_, shifts_);
    kernels_.exp(b_, shifts_);
    // Each factor is e^-reach or more, and a product of half a stretch above 1e-270.
    const double stretch = std::min(1200.0 / std::max(reach, 1e-9), 1e9);
    if (reach <= far) kernels_.shift_logs(bag.p, bag.q, bag.size, a_, b_, shifts_, static_cast<int64_t>(stretch), terms_);
    double top = -std::numeric_limits<double>::infinity();
    for (int64_t k = 0; k <= steps; ++k) {
        const double u = sigma * z_[k], above = std::max(u, 0.0) * static_cast<double>(bag.size);
        terms_[k] = reach > far ? at(bag, count, sigma, z_[k]).g : u * count - above - terms_[k] - z_[k] * z_[k] / 2;
        top = std::max(top, terms_[k]);
    }
    for (int64_t k = 0; k <= steps; ++k) terms_[k] -= top;
    for (int64_t k = steps + 1; k < shifts_; ++k) terms_[k] = -1e4;  // fillers weigh nothing
    kernels_.exp(terms_, shifts_);
    double total = 0.0;
    for (int64_t k = 0; k <= steps; ++k) total += terms_[k];
    return top + std::log(total * step) - log_sqrt_2pi;
}

}  // namespace kofn
