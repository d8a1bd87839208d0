// A bag's random effect is a common shift u ~ N(0, sigma^2) of its logits x.
//
// With u = sigma (centre + zeta), v = sigma zeta and K(v) = sum_i log(q_i + p_i e^v) of the logits y = x + sigma
// centre, P(S = s | u) = P(S = s | y) e^{v s - K(v)}, and the integrand is e^{g(zeta)} but for a factor, g = v s - K(v)
// - centre zeta - zeta^2 / 2, g' = sigma (s - E[S | u]) - centre - zeta and g'' = -sigma^2 var(S | u) - 1. It is
// log-concave. With the centre near its largest value, nothing that is added to log P(S = s | y) is large beside the
// result.
//
// Its singularities are those of logistic functions, at u = -x_i +- i pi. Where sigma is moderate, equal steps are
// enough
// (`choose_steps`); where the integrand is a plateau of many units of u, Gauss' rule on panels that are as wide as it
// allows.
#include "random_effect.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kofn {
namespace {

constexpr int most_searches = 100;
constexpr double far = 300.0;  // of a shift this large e^-|v| and p may both be 0, and each node is looked at by itself
constexpr double log_sqrt_2pi = 0.91893853320467274178;

constexpr double precise = 27.0;  // e^-precise of the integral: about what equal steps leave out of it, and add to it
constexpr double most_steps = 64.0;  // to either side: beyond, panels take fewer nodes
constexpr double from_real = 2.0;    // how far into the complex plane of u bounds are looked at

constexpr double drop = 37.0;  // panels: the integrand is summed where it is above e^-drop of its largest value
const double widest = std::sqrt(2 * drop);  // from the mode to there, at most, because g'' <= -1
constexpr double deviations = 6.0;          // standard deviations of a normal density in a panel
constexpr double from_pole = 4.0,
                 away = 0.6;  // of a panel near a logistic function, and its share of the distance to all

constexpr int64_t block = 8;  // of nodes that are looked at together, a multiple of any number of lanes

constexpr int64_t order = 16;  // of Gauss' rule, a multiple of a block
constexpr double abscissae[order / 2] = {0.095012509837637440185, 0.28160355077925891323, 0.45801677765722738634,
                                         0.61787624440264374845,  0.7554044083550030339,  0.86563120238783174388,
                                         0.94457502307323257608,  0.9894009349916499326};
constexpr double weights[order / 2] = {0.18945061045506849629,  0.18260341504492358887, 0.16915651939500253819,
                                       0.14959598881657673208,  0.12462897125553387205, 0.09515851168249278481,
                                       0.062253523938647892863, 0.027152459411754094852};

double abscissa(int64_t k) { return k < order / 2 ? -abscissae[order / 2 - 1 - k] : abscissae[k - order / 2]; }
double weight(int64_t k) { return k < order / 2 ? weights[order / 2 - 1 - k] : weights[k - order / 2]; }

// The w with w^2 V e^w = deviations^2: as wide as a density of curvature V may be integrated, because |d log V / du|
// <= 1. For a = log w it is the root of the convex 2 a + e^a = level. Newton's steps from above stay above.
double steady(double variance) {
    if (variance < 1e-250) return std::numeric_limits<double>::infinity();
    const double level = 2 * std::log(deviations) - std::log(variance);
    double a = std::min(level / 2, std::log(std::max(level, 1.0)));
    for (int step = 0; step < 4; ++step) a -= (2 * a + std::exp(a) - level) / (2 + std::exp(a));
    return std::exp(a);
}

}  // namespace

Tilted RandomEffect::look(const Bag& bag, double v) {
    double* p = tilted_.reserve(2 * bag.size);
    return tilted(kernels_, bag, v, p, p + bag.size);
}

// Newton's method, by halves where it would leave the interval that holds the mode, or where a step is not half as long
// as the one before: else two steps may follow each other in a circle. A tenth of the width of the integrand is near
// enough, because all that is wanted is how high it is.
Tilted RandomEffect::centre(const Bag& bag, double count, double sigma) {
    count_ = count, sigma_ = sigma, centre_ = 0.0;
    double low = sigma * (count - static_cast<double>(bag.people)), high = sigma * count;  // 0 <= E[S | u] <= n
    double moved = high - low;
    Tilted here = untilted(kernels_, bag);
    for (int step = 0; step < most_searches; ++step) {
        const double slope = sigma * (count - here.moments.mean) - centre_,
                     curvature = sigma * sigma * here.moments.variance + 1.0;
        if (!(slope * slope > 0.01 * curvature)) break;
        (slope > 0.0 ? low : high) = centre_;
        double next = centre_ + slope / curvature;
        if (!(low < next && next < high && 2 * std::abs(next - centre_) < moved)) next = low / 2 + high / 2;
        moved = std::abs(next - centre_);
        centre_ = next;
        here = look(bag, sigma * next);
    }
    return here;
}

RandomEffect::Point RandomEffect::at(const Bag& bag, double zeta) {
    const double v = sigma_ * zeta;
    const Tilted view = look(bag, v);
    // v s - K(v) is what an integrand of v would have; the likeliest labels, ones where y > 0, are counted rather than
    // summed, and set against s and the centre at once: nothing large is subtracted from anything large.
    double excess = view.moments.logs;
    for (int64_t i = 0; i < bag.size; ++i) {
        const double z = bag.z[i];
        excess += (z > 0.0) != (z + v > 0.0) ? (bag.copies ? bag.copies[i] : 1.0) * std::abs(z + v) : 0.0;
    }
    return {zeta * (sigma_ * (count_ - likely_) - centre_) - zeta * zeta / 2 - excess,
            sigma_ * (count_ - view.moments.mean) - centre_ - zeta};
}

// Where g has fallen by `drop`. It is concave: Newton's steps from outside stay outside.
double RandomEffect::end(const Bag& bag, double side) {
    double zeta = side * widest;
    for (int step = 0; step < most_searches; ++step) {
        const Point here = at(bag, zeta);
        if (!(here.g < -1.1 * drop)) break;
        zeta -= (here.g + drop) / here.slope;
    }
    return zeta;
}

// Equal steps h from -r to r, if they are not too many.
//
// |d log V / du| <= 1 for V(u) = var(S | u), so V >= V(0) e^{-|v|} and over a distance r, with w = sigma r, g falls by
// r^2/2 + V(0) (e^{-w} - 1 + w) or more, where e^{-w} - 1 + w >= w^2 / (2 + w). What the sum over steps is wrong by is
// the integrand's Fourier transform at 2 pi / h, which is as small as e^{-2 pi a / h} times its integral along Im zeta
// = a. There e^{-zeta^2/2} has grown by e^{a^2/2}, and a factor 1 / (q
// + p e^v) by 1 / sqrt(1 - 4 p q sin^2(sigma a / 2)) <= e^{1.25 p q (sigma a)^2 / 2} for sigma a <= 2: all of it by
// e^{k a^2 / 2}, k = 1 + 1.25 sigma^2 V. The best a is 2 pi / (h k), or the largest.
bool RandomEffect::choose_steps(const Bag& bag, double variance) {
    double r = std::sqrt(2 * precise);  // that distance is a fixed point, approached from above
    for (int step = 0; step < 2; ++step) r = std::sqrt(precise / (0.5 + sigma_ * sigma_ * variance / (2 + sigma_ * r)));
    const double largest = std::min(static_cast<double>(bag.people) / 4, variance * std::exp(sigma_ * r / 2));
    const double growth = 1 + 1.25 * sigma_ * sigma_ * largest;
    const double a = std::min(from_real / sigma_, std::sqrt(2 * precise / growth));
    const double wanted = 1.0 + r * (precise + growth * a * a / 2) / (2 * 3.14159265358979323846 * a);
    if (!(wanted < most_steps)) return false;
    const auto steps = static_cast<int>(wanted);
    const double h = r / steps;
    nodes_.resize(static_cast<std::size_t>(2 * steps + 1));
    weights_.assign(nodes_.size(), h);
    for (int k = 0; k <= 2 * steps; ++k) nodes_[static_cast<std::size_t>(k)] = h * (k - steps);
    return true;
}

// As wide as `from_pole` near a singularity, and `away` times the distance far from all of them; not wider than
// `deviations` of the normal density, nor of one with the curvature var(S | u).
void RandomEffect::choose_panels(const Bag& bag) {
    nodes_.clear(), weights_.clear();
    double left = end(bag, -1.0);
    const double high = end(bag, 1.0);
    while (left < high) {
        const double v = sigma_ * left, curved = steady(look(bag, v).moments.variance);
        double width = std::min(curved, from_pole);
        if (curved > from_pole) {
            double nearest = std::numeric_limits<double>::infinity();
            for (int64_t i = 0; i < bag.size; ++i) nearest = std::min(nearest, std::abs(bag.z[i] + v));
            width = std::min(curved, std::max(from_pole, away * nearest));
        }
        width = std::max(std::min(width / sigma_, deviations), 1e-14 * std::abs(left));
        width = std::min(width, high - left);
        for (int64_t k = 0; k < order; ++k) add_node(left + width * (0.5 + abscissa(k) / 2), width * weight(k) / 2);
        left = std::max(left + width, std::nextafter(left, high));
    }
}

bool RandomEffect::is_near(double zeta) const { return sigma_ * std::abs(zeta) <= far; }

double RandomEffect::integrate(const Bag& bag, double variance) {
    likely_ = 0.0;
    for (int64_t i = 0; i < bag.size; ++i) likely_ += bag.z[i] > 0.0 ? (bag.copies ? bag.copies[i] : 1.0) : 0.0;
    if (!choose_steps(bag, variance)) choose_panels(bag);
    while (nodes_.size() % block != 0) add_node(nodes_.back(), 0.0);
    const auto nodes = static_cast<int64_t>(nodes_.size());
    a_ = room_.reserve(6 * nodes);
    b_ = a_ + nodes, up_ = b_ + nodes, down_ = up_ + nodes, terms_ = down_ + nodes, leaning_ = terms_ + nodes;
    kernels_.effect_nodes(nodes_.data(), sigma_, nodes, a_, b_, up_, down_);
    const double slope = sigma_ * (count_ - likely_) - centre_;
    for (int64_t first = 0, stop; first < nodes; first = stop) {
        // Near nodes are done together: with factors between 1/2 and 1 + e^reach, a product of a stretch is at most
        // 1e260.
        double reach = 0.0;
        for (stop = first; stop < nodes && is_near(nodes_[stop]); ++stop)
            reach = std::max(reach, sigma_ * std::abs(nodes_[stop]));
        stop -= stop % block;
        const auto stretch = static_cast<int64_t>(600.0 / (reach + 0.7));
        kernels_.effect_terms(bag.p, bag.q, bag.copies, bag.size, nodes_.data() + first, slope, up_ + first,
                              down_ + first, stop - first, stretch, terms_ + first);
        if (stop == first)
            for (stop = first + block; first < stop; ++first) terms_[first] = at(bag, nodes_[first]).g;
    }
    return kernels_.effect_weights(terms_, weights_.data(), nodes) - centre_ * centre_ / 2 - log_sqrt_2pi;
}

// d/dx_i is P(y_i = 1 | S = s) - E[sigmoid(x_i + u) | S = s], d/d sigma is E[z (s - E[S | u]) | S = s], z = centre +
// zeta: means under the weights of the nodes.
double RandomEffect::derivatives(const Bag& bag, double* means) {
    const auto nodes = static_cast<int64_t>(nodes_.size());
    double lean = 0.0;
    for (int64_t k = 0; k < nodes; ++k) lean += leaning_[k] = terms_[k] * (centre_ + nodes_[k]);
    int64_t begin = 0, end = nodes;  // of the near ones, which lie side by side
    while (begin < nodes && !is_near(nodes_[begin])) ++begin;
    while (end > begin && !is_near(nodes_[end - 1])) --end;
    double leaning = kernels_.effect_means(bag.p, bag.q, bag.copies, bag.size, a_ + begin, b_ + begin, terms_ + begin,
                                           leaning_ + begin, end - begin, means);
    for (int64_t k = 0; k < nodes; ++k) {
        if (k == begin) k = end;
        if (k >= nodes) break;
        const Tilted view = look(bag, sigma_ * nodes_[k]);
        leaning += leaning_[k] * view.moments.mean;
        for (int64_t i = 0; i < bag.size; ++i) means[i] += terms_[k] * view.p[i];
    }
    return count_ * lean - leaning;
}

}  // namespace kofn
