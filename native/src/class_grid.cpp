#include "class_grid.h"

#include <algorithm>
#include <cmath>

namespace kofn {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double alias_exponent = 34.0;  // e^-34 = 2e-15
constexpr double dropped_exponent = 34.0;
constexpr int64_t most_dimensions = ClassFrequencies::most_classes - 1;

// Distance from the mean beyond which, by Bennett's bound, probabilities are below e^-exponent.
double bennett_radius(double variance, double width, double exponent) {
    const double v = variance / (width * width);
    if (!(v > 0.0)) return 0.0;
    double x = std::sqrt(2.0 * exponent * v);  // of a Gaussian: too small, and the bound is convex in x
    for (int step = 0; step < 60; ++step) {
        const double y = x / v, derivative = std::log1p(y), value = v * ((1.0 + y) * derivative - y) - exponent;
        const double next = x - value / derivative;
        if (!(std::fabs(next - x) > 1e-3)) return next * width;
        x = next;
    }
    return x * width;
}

struct Reduced {
    int64_t d;
    double u[most_dimensions][most_dimensions];           // whole numbers; rows are coordinates, columns classes 1 ..
    double covariance[most_dimensions][most_dimensions];  // of L

    Reduced(const TiltedClasses& bag, int64_t classes) : d(classes - 1), u{}, covariance{} {
        for (int64_t a = 0; a < d; ++a) {
            u[a][a] = 1.0;
            for (int64_t b = 0; b < d; ++b) covariance[a][b] = bag.covariance[(a + 1) * classes + b + 1];
        }
        for (int pass = 0; pass < 100 && reduce(); ++pass) {
        }
    }

    // Take whole multiples of one coordinate from another while that makes its variance smaller.
    bool reduce() {
        bool changed = false;
        for (int64_t a = 0; a < d; ++a)
            for (int64_t b = 0; b < d; ++b) {
                if (a == b || !(covariance[b][b] > 0.0)) continue;
                const double q = std::nearbyint(covariance[a][b] / covariance[b][b]);
                const double after = covariance[a][a] - 2 * q * covariance[a][b] + q * q * covariance[b][b];
                if (q == 0.0 || !(after < 0.999 * covariance[a][a])) continue;
                for (int64_t c = 0; c < d; ++c) u[a][c] -= q * u[b][c];
                for (int64_t c = 0; c < d; ++c) covariance[a][c] -= q * covariance[b][c];
                for (int64_t c = 0; c < d; ++c) covariance[c][a] = a == c ? std::max(after, 0.0) : covariance[a][c];
                changed = true;
            }
        return changed;
    }
};

// 1 / (variance of L_a given the others), a diagonal entry of the inverse: by elimination of the others.
double precision(const Reduced& reduced, int64_t a) {
    double m[most_dimensions][most_dimensions];
    int64_t order[most_dimensions], number = 0;
    for (int64_t b = 0; b < reduced.d; ++b)
        if (b != a) order[number++] = b;
    order[number++] = a;
    for (int64_t i = 0; i < number; ++i)
        for (int64_t j = 0; j < number; ++j) m[i][j] = reduced.covariance[order[i]][order[j]];
    for (int64_t k = 0; k + 1 < number; ++k) {
        if (!(m[k][k] > 1e-12)) continue;  // as good as known: tells nothing
        for (int64_t i = k + 1; i < number; ++i)
            for (int64_t j = k + 1; j < number; ++j) m[i][j] -= m[i][k] * m[k][j] / m[k][k];
    }
    return 1.0 / std::max(m[number - 1][number - 1], 1e-12);
}

}  // namespace

bool ClassGrid::choose(const TiltedClasses& bag, int64_t size, int64_t classes, const int64_t* counts, int lanes,
                       double most) {
    const Reduced reduced(bag, classes);
    const int64_t d = reduced.d;
    int64_t points[most_dimensions], far[most_dimensions];
    double box = 1.0, all = 1.0;
    for (int64_t a = 0; a < d; ++a) {
        double low = 0.0, high = 0.0, gap = 0.0;  // class 0 adds nothing to L
        for (int64_t c = 0; c < d; ++c) {
            low = std::min(low, reduced.u[a][c]);
            high = std::max(high, reduced.u[a][c]);
            gap += reduced.u[a][c] * (static_cast<double>(counts[c + 1]) - bag.mean[c + 1]);
        }
        const double width = high - low, reach = bennett_radius(reduced.covariance[a][a], width, alias_exponent);
        const double support = width * static_cast<double>(size) + 1.0;
        // Half a count more: a gap of 1 that rounding makes a little less must not be an alias of 0 where L is certain.
        const double wanted = std::min(std::floor(reach + std::fabs(gap) + 0.5) + 1.0, support);
        if (!(wanted < 1e9)) return false;
        points[a] = static_cast<int64_t>(wanted);
        // A Gaussian ends at u = sqrt(2 e / conditional variance); here 2 |sin(u / 2)| stands for u.
        const double radius = std::sqrt(2.0 * dropped_exponent * precision(reduced, a)) / 2.0;
        const double angle = radius < 1.0 ? 2.0 * std::asin(radius) : pi;
        far[a] = std::min<int64_t>(points[a] / 2,
                                   static_cast<int64_t>(std::ceil(angle / (2 * pi) * static_cast<double>(points[a]))));
        box *= static_cast<double>(2 * far[a] + 1);
        all *= static_cast<double>(points[a]);
    }
    if (!(box < 64.0 * most)) return false;
    int64_t m[most_dimensions];
    for (int64_t a = 0; a < d; ++a) m[a] = -far[a];
    // phi(u) is not needed at u and -u, nor where m and m - M are the same frequency.
    std::vector<double> kept;             // angles of classes 1 .., that of the counts, weight
    double wanted[most_dimensions] = {};  // L of the counts
    for (int64_t a = 0; a < d; ++a)
        for (int64_t c = 0; c < d; ++c) wanted[a] += reduced.u[a][c] * static_cast<double>(counts[c + 1]);
    // 2 pi m x / M for whole x, reduced in whole numbers: no digit is lost.
    const auto turns = [&](int64_t a, double x) {
        return 2 * pi * static_cast<double>(m[a] * static_cast<int64_t>(x) % points[a]) /
               static_cast<double>(points[a]);
    };
    const auto next = [&] {
        for (int64_t a = 0; a < d; ++a) {
            if (++m[a] <= far[a]) return true;
            m[a] = -far[a];
        }
        return false;
    };
    const auto same = [&](int64_t a) { return 2 * m[a] == points[a] || 2 * m[a] == -points[a]; };
    double angle[most_dimensions + 1] = {};
    do {
        bool twice = false, own = true;  // own: the representative of itself
        for (int64_t a = d - 1; a >= 0 && own; --a) {
            if (2 * m[a] == -points[a]) own = false;  // the same as +points / 2
            if (!twice && m[a] != 0 && !same(a)) (m[a] > 0 ? twice : own) = m[a] > 0;
        }
        if (!own) continue;
        for (int64_t c = 0; c < d; ++c) {
            angle[c + 1] = 0.0;
            for (int64_t a = 0; a < d; ++a) angle[c + 1] += turns(a, reduced.u[a][c]);
        }
        double bound = 0.0;
        for (int64_t c = 0; c < classes; ++c)
            for (int64_t e = 0; e < c; ++e) {
                const double s = std::sin((angle[c] - angle[e]) / 2);
                bound -= 2.0 * bag.covariance[c * classes + e] * s * s;
            }
        if (bound > dropped_exponent) continue;
        kept.insert(kept.end(), angle + 1, angle + 1 + d);
        double phase = 0.0;
        for (int64_t a = 0; a < d; ++a) phase += turns(a, wanted[a]);
        kept.push_back(phase);
        kept.push_back(twice ? 2.0 : 1.0);
        if (static_cast<double>(kept.size()) > most * static_cast<double>(d + 2)) return false;
    } while (next());
    const auto used = static_cast<int64_t>(kept.size()) / (d + 2);
    number_ = (used + 2 * lanes - 1) / (2 * lanes) * (2 * lanes);
    cosine_.assign(static_cast<std::size_t>(d * number_), 1.0);
    sine_.assign(static_cast<std::size_t>(d * number_), 0.0);
    re_.assign(static_cast<std::size_t>(number_), 0.0);
    im_.assign(static_cast<std::size_t>(number_), 0.0);
    for (int64_t f = 0; f < used; ++f) {
        const double* entry = kept.data() + f * (d + 2);
        for (int64_t c = 0; c < d; ++c) {
            cosine_[c * number_ + f] = std::cos(entry[c]);
            sine_[c * number_ + f] = std::sin(entry[c]);
        }
        re_[f] = entry[d + 1] / all * std::cos(entry[d]);
        im_[f] = -entry[d + 1] / all * std::sin(entry[d]);
    }
    return true;
}

}  // namespace kofn
