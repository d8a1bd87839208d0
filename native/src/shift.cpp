// What a bag effect, a common shift u ~ N(0, sigma^2) of a bag's logits, adds to log P(S = s).
//
// With u = sigma (centre + zeta), v = sigma zeta and K(v) = sum_i log(q_i + p_i e^v) of the logits y = x + sigma centre, the
// integrand is e^{g(zeta)} but for a factor, g = v s - K(v) - centre zeta - zeta^2 / 2, g' = sigma (s - E[S | u]) - centre -
// zeta and g'' = -sigma^2 var(S | u) - 1. It is log-concave, and integrated by Gauss' rule on panels, each as wide as the rule
// allows: counts/_bag_effect.py says the same in torch, and why that is so.
#include "shift.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kofn {
namespace {

constexpr double drop = 37.0;  // the integrand is summed where it is above e^-drop of its largest value
constexpr int most_searches = 100;
constexpr double far = 300.0;  // of a shift this large e^-|v| and p may both be 0, and each node is looked at by itself
constexpr double log_sqrt_2pi = 0.91893853320467274178;
const double widest = std::sqrt(2 * drop);  // from the mode to there, at most, because g'' <= -1

constexpr double deviations = 6.0;             // standard deviations of a normal density in a panel
constexpr double from_pole = 4.0, away = 0.6;  // of a panel near a logistic function, and its share of the distance to all

constexpr int64_t order = 16;  // of Gauss' rule, a multiple of any number of lanes
constexpr double abscissae[order / 2] = {0.095012509837637440185, 0.28160355077925891323, 0.45801677765722738634,
                                         0.61787624440264374845,  0.7554044083550030339,  0.86563120238783174388,
                                         0.94457502307323257608,  0.9894009349916499326};
constexpr double weights[order / 2] = {0.18945061045506849629, 0.18260341504492358887, 0.16915651939500253819,
                                       0.14959598881657673208, 0.12462897125553387205, 0.09515851168249278481,
                                       0.062253523938647892863, 0.027152459411754094852};

double abscissa(int64_t k) { return k < order / 2 ? -abscissae[order / 2 - 1 - k] : abscissae[k - order / 2]; }
double weight(int64_t k) { return k < order / 2 ? weights[order / 2 - 1 - k] : weights[k - order / 2]; }

// The w with w^2 V e^w = deviations^2: as wide as a density of curvature V may be integrated, because |d log V / du| <= 1.
// For a = log w it is the root of the convex 2 a + e^a = level. Newton's steps from above stay above.
double steady(double variance) {
    if (variance < 1e-250) return std::numeric_limits<double>::infinity();
    const double level = 2 * std::log(deviations) - std::log(variance);
    double a = std::min(level / 2, std::log(std::max(level, 1.0)));
    for (int step = 0; step < 4; ++step) a -= (2 * a + std::exp(a) - level) / (2 + std::exp(a));
    return std::exp(a);
}

double nearest(const Bag& bag, double v) {
    double least = std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < bag.size; ++i) least = std::min(least, std::abs(bag.z[i] + v));
    return least;
}

}  // namespace

void ShiftSolver::run(int64_t first, int64_t last) {
    first_ = first;
    bags_.take(kernels_, call_.input, first, last);
    const int64_t begin = call_.input.start(first);
    if (call_.slope) std::fill(call_.slope + begin, call_.slope + call_.input.start(last), 0.0);
    for (int64_t j = 0; j < bags_.bags(); ++j) {
        const Bag bag = bags_.bag(j);
        const double sigma = call_.sigma[first + j];
        const int64_t count = call_.counts[first + j] - bags_.ones(j);
        const bool broken = bags_.broken(j) || std::isnan(sigma);
        const bool possible = call_.counts[first + j] >= 0 && count >= 0 && count <= bag.size && sigma > 0.0;
        if (call_.mode) {
            call_.mode[first + j] = possible && !broken ? mode(bag, static_cast<double>(count), sigma) : 0.0;
            continue;
        }
        double value = broken ? std::numeric_limits<double>::quiet_NaN() : 0.0;
        if (call_.by_sigma) call_.by_sigma[first + j] = 0.0;
        if (possible && !broken) {
            const auto likely = std::count_if(bag.z, bag.z + bag.size, [](double z) { return z > 0.0; });
            const Case of{bag, static_cast<double>(count), sigma, call_.centre[first + j], static_cast<double>(likely)};
            choose_panels(of);
            value = integrate(of);
            if (call_.slope) slopes(j, of);
        }
        call_.value[first + j] = value;
    }
}

Tilted ShiftSolver::look(const Bag& bag, double v) {
    double* p = tilted_.reserve(2 * bag.size);
    return tilted(kernels_, bag, v, p, p + bag.size);
}

ShiftSolver::Point ShiftSolver::at(const Case& of, double zeta) {
    const double v = of.sigma * zeta;
    const Tilted view = look(of.bag, v);
    // v s - K(v) is what an integrand of v would have; the likeliest labels, ones where y > 0, are counted rather than summed,
    // and set against s and the centre at once: nothing large is subtracted from anything large.
    double excess = view.moments.logs;
    for (int64_t i = 0; i < of.bag.size; ++i) {
        const double z = of.bag.z[i];
        excess += (z > 0.0) != (z + v > 0.0) ? std::abs(z + v) : 0.0;
    }
    return {zeta * (of.sigma * (of.count - of.likely) - of.centre) - zeta * zeta / 2 - excess,
            of.sigma * (of.count - view.moments.mean) - of.centre - zeta};
}

// Near the mode of g, from a centre of 0: Newton's method, by halves where it would leave the interval that holds it, or
// where a step is not half as long as the one before: else two steps may follow each other in a circle. A tenth of the width
// of the integrand is near enough, because all that is wanted is how high it is.
double ShiftSolver::mode(const Bag& bag, double count, double sigma) {
    double low = sigma * (count - static_cast<double>(bag.size)), high = sigma * count;  // 0 <= E[S | u] <= n
    double z = 0.0, moved = high - low;
    Moments here = kernels_.moments(bag.p, bag.q, bag.size);
    for (int step = 0; step < most_searches; ++step) {
        const double slope = sigma * (count - here.mean) - z, curvature = sigma * sigma * here.variance + 1.0;
        if (!(slope * slope > 0.01 * curvature)) break;
        (slope > 0.0 ? low : high) = z;
        double next = z + slope / curvature;
        if (!(low < next && next < high && 2 * std::abs(next - z) < moved)) next = low / 2 + high / 2;
        moved = std::abs(next - z);
        z = next;
        here = look(bag, sigma * z).moments;
    }
    return z;
}

// Where g has fallen by `drop`. It is concave: Newton's steps from outside stay outside.
double ShiftSolver::end(const Case& of, double side) {
    double zeta = side * widest;
    for (int step = 0; step < most_searches; ++step) {
        const Point here = at(of, zeta);
        if (!(here.g < -1.1 * drop)) break;
        zeta -= (here.g + drop) / here.slope;
    }
    return zeta;
}

// As wide as `from_pole` near a singularity of a logistic function, which are at u = -y +- i pi, and `away` times the distance
// far from all of them; not wider than `deviations` of the normal density, nor of one with the curvature var(S | u).
void ShiftSolver::choose_panels(const Case& of) {
    double left = end(of, -1.0);
    const double high = end(of, 1.0);
    left_.clear(), width_.clear();
    while (left < high) {
        const double v = of.sigma * left, curved = steady(look(of.bag, v).moments.variance);
        double width = std::min(curved, from_pole);
        if (curved > from_pole) width = std::min(curved, std::max(from_pole, away * nearest(of.bag, v)));
        width = std::max(std::min(width / of.sigma, deviations), 1e-14 * std::abs(left));
        width = std::min(width, high - left);
        left_.push_back(left);
        width_.push_back(width);
        left = std::max(left + width, std::nextafter(left, high));
    }
}

// The log of the integral, and in terms_ what each node adds to it, but for a factor.
double ShiftSolver::integrate(const Case& of) {
    const Bag& bag = of.bag;
    const auto panels = static_cast<int64_t>(left_.size());
    nodes_ = order * panels;
    double* room = room_.reserve(6 * nodes_);
    zeta_ = room, a_ = room + nodes_, b_ = a_ + nodes_, e_ = b_ + nodes_, terms_ = e_ + nodes_, leaning_ = terms_ + nodes_;
    for (int64_t k = 0; k < nodes_; ++k) {
        zeta_[k] = left_[k / order] + width_[k / order] * (0.5 + abscissa(k % order) / 2);
        a_[k] = std::min(0.0, -of.sigma * zeta_[k]);
        b_[k] = std::min(0.0, of.sigma * zeta_[k]);
    }
    kernels_.exp(a_, nodes_);
    kernels_.exp(b_, nodes_);
    // The likelier label of each instance, and the other: K(v) less v for each y > 0 is sum log(larger + smaller e^{+-v}), and
    // what is nearly sure gives a factor of nearly 1.
    double* large = parts_.reserve(2 * bag.size);
    double* small = large + bag.size;
    const auto ones = static_cast<int64_t>(of.likely);
    for (int64_t i = 0, one = 0, none = ones; i < bag.size; ++i) {
        const bool positive = bag.z[i] > 0.0;
        const int64_t to = positive ? one++ : none++;
        large[to] = positive ? bag.p[i] : bag.q[i];
        small[to] = positive ? bag.q[i] : bag.p[i];
    }
    const double slope = of.sigma * (of.count - of.likely) - of.centre;
    double top = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < panels; ++j) {
        const int64_t k = j * order;
        const double reach = of.sigma * std::max(std::abs(left_[j]), std::abs(left_[j] + width_[j]));
        if (reach <= far) {
            double more[order];
            // A factor is between 1/2 and 1 + e^reach, and a product of half a stretch between 1e-270 and 1e270.
            const auto stretch = static_cast<int64_t>(1200.0 / (reach + 0.7));
            for (int64_t l = 0; l < order; ++l) e_[k + l] = a_[k + l] / b_[k + l];  // e^-v
            kernels_.shift_logs(large, small, ones, e_ + k, order, stretch, terms_ + k);
            for (int64_t l = 0; l < order; ++l) e_[k + l] = b_[k + l] / a_[k + l];
            kernels_.shift_logs(large + ones, small + ones, bag.size - ones, e_ + k, order, stretch, more);
            for (int64_t l = 0; l < order; ++l) {
                const double zeta = zeta_[k + l];
                terms_[k + l] = zeta * slope - zeta * zeta / 2 - (terms_[k + l] + more[l]);
            }
        } else {
            for (int64_t l = 0; l < order; ++l) terms_[k + l] = at(of, zeta_[k + l]).g;
        }
        for (int64_t l = 0; l < order; ++l) top = std::max(top, terms_[k + l]);
    }
    for (int64_t k = 0; k < nodes_; ++k) terms_[k] -= top;
    kernels_.exp(terms_, nodes_);
    double total = 0.0;
    for (int64_t k = 0; k < nodes_; ++k) total += terms_[k] *= width_[k / order] * weight(k % order) / 2;
    return top + std::log(total) - of.centre * of.centre / 2 - log_sqrt_2pi;
}

// d/dy_i = p_i - E[sigmoid(y_i + v)] and d/d sigma = E[zeta (s - E[S | u])], under the weights of the nodes.
void ShiftSolver::slopes(int64_t j, const Case& of) {
    const Bag& bag = of.bag;
    double total = 0.0, lean = 0.0, leaning = 0.0;
    for (int64_t k = 0; k < nodes_; ++k) total += terms_[k];
    for (int64_t k = 0; k < nodes_; ++k) {
        terms_[k] /= total;
        leaning_[k] = terms_[k] * zeta_[k];
        lean += leaning_[k];
    }
    const auto is_near = [&](int64_t k) { return of.sigma * std::abs(zeta_[k]) <= far; };
    int64_t begin = 0, end = nodes_;  // of the near ones, which lie side by side
    while (begin < nodes_ && !is_near(begin)) ++begin;
    while (end > begin && !is_near(end - 1)) --end;
    double* means = means_.reserve(bag.size);
    leaning = kernels_.shift_means(bag.p, bag.q, bag.size, a_ + begin, b_ + begin, terms_ + begin, leaning_ + begin,
                                   end - begin, means);
    for (int64_t k = 0; k < nodes_; ++k) {
        if (k == begin) k = end;
        if (k >= nodes_) break;
        const Tilted view = look(bag, of.sigma * zeta_[k]);
        leaning += leaning_[k] * view.moments.mean;
        for (int64_t i = 0; i < bag.size; ++i) means[i] += terms_[k] * view.p[i];
    }
    call_.by_sigma[first_ + j] = of.count * lean - leaning;
    double* out = call_.slope + call_.input.start(first_);
    for (int64_t i = 0; i < bag.size; ++i) out[bags_.source(bags_.start(j) + i)] = bag.p[i] - means[i];
}

}  // namespace kofn
