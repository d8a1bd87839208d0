#include "class_tilt.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kofn {
namespace {

constexpr int max_steps = 60;           // at one temperature; Newton needs 3 to 8
constexpr double near_enough = 0.05;    // squared distance of the mean from k, in standard deviations
constexpr double smooth_spread = 40.0;  // logits that differ by less than that need no higher temperature
constexpr double cooling = 0.3;

}  // namespace

// The distribution of (x + t) / temperature, and f there, times the temperature.
void ClassTilt::look(double temperature) {
    double* p = at_.p;
    double* sums = sums_.data();
    double value = 0.0;
    for (int64_t i = 0; i < size_; ++i) {
        const double* row = log_p_ + i * classes_;
        double* z = p + i * classes_;
        double top = -std::numeric_limits<double>::infinity();
        for (int64_t c = 0; c < classes_; ++c) {
            z[c] = (row[c] + at_.tilt[c]) / temperature;
            top = std::max(top, z[c]);
        }
        for (int64_t c = 0; c < classes_; ++c) z[c] -= top;
        value += top;
    }
    kernels_.exp(p, size_ * classes_);
    std::fill(at_.mean.begin(), at_.mean.end(), 0.0);
    std::fill(at_.covariance.begin(), at_.covariance.end(), 0.0);
    for (int64_t i = 0; i < size_; ++i) {
        double* row = p + i * classes_;
        double sum = 0.0;
        for (int64_t c = 0; c < classes_; ++c) sum += row[c];
        sums[i] = sum;
        const double scale = 1.0 / sum;
        for (int64_t c = 0; c < classes_; ++c) row[c] *= scale;
        for (int64_t c = 0; c < classes_; ++c) {
            at_.mean[c] += row[c];
            for (int64_t d = 0; d < c; ++d) at_.covariance[c * classes_ + d] -= row[c] * row[d];
        }
    }
    // The variance of a class is what it shares with the others: no cancellation where p is nearly one.
    for (int64_t c = 0; c < classes_; ++c)
        for (int64_t d = 0; d < c; ++d) {
            const double shared = at_.covariance[c * classes_ + d];
            at_.covariance[d * classes_ + c] = shared;
            at_.covariance[c * classes_ + c] -= shared;
            at_.covariance[d * classes_ + d] -= shared;
        }
    kernels_.log(sums, size_);
    for (int64_t i = 0; i < size_; ++i) value += sums[i];
    value *= temperature;
    for (int64_t c = 0; c < classes_; ++c) value -= at_.tilt[c] * static_cast<double>(counts_[c]);
    at_.back = value;
}

// Newton's step for classes 1 .., by Cholesky; and whether none is needed.
bool ClassTilt::near(double temperature) {
    const int64_t d = classes_ - 1;
    double trace = 0.0;
    for (int64_t c = 0; c < classes_; ++c) trace += at_.covariance[c * classes_ + c];
    const double ridge = 1e-12 * trace + 1e-300;
    decrement_ = 0.0;
    for (int64_t a = 0; a < d; ++a) {
        double rest = static_cast<double>(counts_[a + 1]) - at_.mean[a + 1];
        for (int64_t b = 0; b <= a; ++b) {
            double value = at_.covariance[(a + 1) * classes_ + b + 1];
            for (int64_t k = 0; k < b; ++k) value -= factor_[a * d + k] * factor_[b * d + k];
            if (a == b)
                factor_[a * d + a] = std::sqrt(std::max(value, 0.0) + ridge);
            else
                factor_[a * d + b] = value / factor_[b * d + b];
        }
        for (int64_t k = 0; k < a; ++k) rest -= factor_[a * d + k] * step_[k];
        step_[a] = rest / factor_[a * d + a];
        decrement_ += step_[a] * step_[a];
    }
    double gap = 0.0;
    for (int64_t c = 0; c < classes_; ++c)
        gap = std::max(gap, std::fabs(at_.mean[c] - static_cast<double>(counts_[c])));
    double longest = 0.0;
    for (int64_t a = d - 1; a >= 0; --a) {
        double value = step_[a];
        for (int64_t k = a + 1; k < d; ++k) value -= factor_[k * d + a] * step_[k];
        step_[a] = value / factor_[a * d + a];
        longest = std::max(longest, std::fabs(step_[a]));
    }
    // Where logits leave nearly nothing open the Hessian vanishes, and with it the scale of a step.
    const double limit = 20.0, scale = temperature * (longest > limit ? limit / longest : 1.0);
    for (double& x : step_) x *= scale;
    return decrement_ <= near_enough || gap <= 1e-4 || !std::isfinite(decrement_);
}

void ClassTilt::descend(double temperature) {
    look(temperature);
    for (int step = 0; step < max_steps && !near(temperature); ++step) {
        start_ = at_.tilt;
        const double before = at_.back;
        double derivative = 0.0;
        for (int64_t c = 1; c < classes_; ++c)
            derivative += step_[c - 1] * (at_.mean[c] - static_cast<double>(counts_[c]));
        double length = 1.0;
        for (int half = 0; half < 40; ++half, length /= 2) {
            for (int64_t c = 1; c < classes_; ++c) at_.tilt[c] = start_[c] + length * step_[c - 1];
            look(temperature);
            if (at_.back <= before + 0.25 * length * derivative + 1e-13 * std::fabs(before)) break;
        }
    }
}

const TiltedClasses& ClassTilt::solve(const double* log_p, int64_t size, int64_t classes, const int64_t* counts) {
    log_p_ = log_p, size_ = size, classes_ = classes, counts_ = counts;
    at_.p = p_.reserve(size * classes);
    sums_.reserve(size);
    at_.tilt.assign(static_cast<std::size_t>(classes), 0.0);
    at_.mean.assign(static_cast<std::size_t>(classes), 0.0);
    at_.covariance.assign(static_cast<std::size_t>(classes * classes), 0.0);
    step_.assign(static_cast<std::size_t>(classes - 1), 0.0);
    factor_.assign(static_cast<std::size_t>((classes - 1) * (classes - 1)), 0.0);
    // Logits in the thousands make f a polyhedron, with no derivative for Newton to see. At a temperature as high as
    // they differ it is smooth; its minimum, followed down to temperature 1, stays within reach of the next.
    double spread = 0.0;
    for (int64_t i = 0; i < size; ++i) {
        double low = 0.0, high = -std::numeric_limits<double>::infinity();
        for (int64_t c = 0; c < classes; ++c) {
            const double x = log_p[i * classes + c];
            high = std::max(high, x);
            if (std::isfinite(x)) low = std::min(low, x);
        }
        spread = std::max(spread, high - low);
    }
    if (spread > smooth_spread)
        for (double temperature = spread / smooth_spread; temperature > 1.0; temperature *= cooling)
            descend(temperature);
    descend(1.0);
    return at_;
}

}  // namespace kofn
