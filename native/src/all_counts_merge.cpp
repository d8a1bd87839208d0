#include "all_counts_merge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "window.h"

namespace kofn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

const double taken = std::exp(-taken_log);
constexpr double aimed_log = 6.2;   // by how much the first count of a window should be below its centre
constexpr int64_t directly = 4096;  // products up to which convolving is faster than transforming

}  // namespace

double Logs::up(int64_t k) const { return k < size ? at[k + 1] - at[k] : -infinity; }
double Logs::down(int64_t k) const { return k > 0 ? at[k] - at[k - 1] : infinity; }

// a_k + b_{count - k} is concave in k: it grows while the step up in a is larger than the step down in b. Its largest
// value is, as a function of the count, concave again, with the larger of the two steps up and the smaller of those
// down; the tilt lies between them, so that under it neither sequence has a larger value elsewhere.
AllCountsMerger::Place AllCountsMerger::place(int64_t count) const {
    int64_t low = std::max<int64_t>(0, count - b_.size), high = std::min(a_.size, count);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a_.up(middle) > b_.down(count - middle))
            low = middle + 1;
        else
            high = middle;
    }
    const int64_t i = low, j = count - low;
    const double up = std::max(a_.up(i), b_.up(j)), down = std::min(a_.down(i), b_.down(j));
    return {count, i, j, -(up / 2 + down / 2), a_.at[i] + b_.at[j]};
}

// A place as far ahead as `next` can still be seen from, near next + stride. The logarithm falls about quadratically.
AllCountsMerger::Place AllCountsMerger::ahead(const Place& next, int64_t& stride) const {
    const int64_t most = a_.size + b_.size - 1 - next.count;
    for (int tries = 0;; ++tries) {
        stride = std::min(stride, most);
        if (stride <= 0) return next;
        const Place centre = place(next.count + stride);
        const double fall = (centre.top - next.top) + centre.tilt * static_cast<double>(stride);
        const bool seen = fall <= taken_log - 0.2, short_of = fall < 0.6 * aimed_log && stride < most;
        if (seen && (!short_of || tries >= 4)) return centre;
        const double scale = std::clamp(std::sqrt(aimed_log / std::max(fall, 1e-3)), 0.1, 4.0);
        const auto next_stride = static_cast<int64_t>(static_cast<double>(stride) * (scale > 0.0 ? scale : 0.5));
        stride = seen ? std::max(next_stride, stride + 1) : std::min(next_stride, stride - 1);
    }
}

// Differences from the end that is likelier without the tilt: large logarithms are rounded in proportion to themselves,
// so that end's are not to be touched by those of the other.
AllCountsMerger::Slice AllCountsMerger::slice(const Logs& logs, int64_t mode, double tilt) const {
    const auto visible = [&](int64_t k) {
        return (logs.at[k] - logs.at[mode]) + tilt * static_cast<double>(k - mode) >= -negligible;
    };
    int64_t low = 0, first = mode;
    while (low < first) {
        const int64_t middle = low + (first - low) / 2;
        if (visible(middle))
            first = middle;
        else
            low = middle + 1;
    }
    int64_t last = mode, high = logs.size;
    while (last < high) {
        const int64_t middle = high - (high - last) / 2;
        if (visible(middle))
            last = middle;
        else
            high = middle - 1;
    }
    const int64_t anchor = tilt > 0.0 ? first : last;
    const double peak = (logs.at[mode] - logs.at[anchor]) + tilt * static_cast<double>(mode - anchor);
    return {first, last - first + 1, logs.at[anchor], static_cast<double>(first - anchor), peak};
}

const double* AllCountsMerger::roots(int64_t length) {
    if (length > longest_) {
        kernels_.make_roots(length, roots_.reserve(fft_roots(length)));
        longest_ = length;
    }
    return roots_.data();
}

// Directly if the slices are short: every term is positive, so every digit is right, and there is no alias.
AllCountsMerger::Product AllCountsMerger::convolve(const Slice& a, const Slice& b, Mass mass, int64_t from,
                                                   int64_t end) {
    double *left = slices_.data(), *right = left + room_;
    const int64_t all = a.number + b.number - 1;
    if (a.number * b.number <= directly) {
        double* out = product_.reserve(all);
        kernels_.convolve(left, a.number, right, b.number, out);
        return {out + from, end - from, 0.0};
    }
    // What is beyond `far` from the mean is negligible (window.h), so counts up to length - far from it have no alias.
    const double far = radius(mass.variance, negligible), reach = radius(mass.variance, taken_log);
    const auto wanted = std::max({a.number, b.number, static_cast<int64_t>(std::ceil(far + reach))});
    int64_t length = static_cast<int64_t>(kernels_.lanes) * kernels_.lanes;
    while (length < std::min(wanted, all)) length *= 2;
    std::fill(left + a.number, left + length, 0.0);
    std::fill(right + b.number, right + length, 0.0);
    kernels_.square(left, right, length, roots(length));
    if (length < all) {
        const double clear = static_cast<double>(length) - far;
        end = std::min(end, static_cast<int64_t>(std::floor(mass.mean + clear)) + 1);
        if (static_cast<double>(from) < mass.mean - clear || from >= end) return {right, 0, 0.0};
    }
    double* out = product_.reserve(end - from);
    for (int64_t k = from; k < end; ++k) out[k - from] = right[k < length ? k : k - length];
    return {out, end - from, -std::log(2.0 * static_cast<double>(length))};
}

// The counts from `next` on that are seen from `centre`: how many, their log-probabilities to out.
int64_t AllCountsMerger::window(const Place& next, const Place& centre, double* out) {
    const double tilt = centre.tilt;
    const Slice a = slice(a_, centre.of_a, tilt), b = slice(b_, centre.of_b, tilt);
    // Positions count from the first count of the product of the slices.
    const int64_t first = a.first + b.first, from = next.count - first;
    const int64_t end = std::min(a.number + b.number - 1, a_.size + b_.size - first);
    if (from < 0 || from >= end) return 0;
    room_ = 2 * (a.number + b.number) + 64;  // for a transform of the next power of two
    double* left = slices_.reserve(2 * room_);
    const Mass of_a = kernels_.lean(a_.at + a.first, a.number, a.base, tilt, a.from, a.peak, left);
    const Mass of_b = kernels_.lean(b_.at + b.first, b.number, b.base, tilt, b.from, b.peak, left + room_);
    const Mass mass{of_a.mean + of_b.mean, of_a.variance + of_b.variance};
    const Product product = convolve(a, b, mass, from, end);
    if (product.number == 0) return 0;
    // It is log-concave: it rises to its largest and falls from there.
    const double* stop = product.at + product.number;
    const double* peak = std::max_element(product.at, stop);
    const double least = taken * *peak;
    if (!(product.at[0] >= least) || !(least > 0.0)) return 0;
    const int64_t seen = std::find_if(peak, stop, [least](double p) { return p < least; }) - product.at;
    std::copy_n(product.at, seen, out);
    const double origin = (static_cast<double>(a.first) - a.from) + (static_cast<double>(b.first) - b.from);
    const double constant = a.base + b.base + (a.peak + b.peak + product.log_scale);
    kernels_.straighten(out, seen, constant, tilt, static_cast<double>(next.count) - origin);
    return seen;
}

// One count by itself, where logits of 1e300 are further apart than any tilt that a float64 holds can resolve.
double AllCountsMerger::alone(const Place& next) const {
    double total = 0.0;
    const auto add = [&](int64_t i) {
        const double term = std::exp((a_.at[i] - a_.at[next.of_a]) + (b_.at[next.count - i] - b_.at[next.of_b]));
        total += term;
        return term > 1e-18;
    };
    for (int64_t i = next.of_a; i <= std::min(a_.size, next.count) && add(i); ++i) {
    }
    for (int64_t i = next.of_a - 1; i >= std::max<int64_t>(0, next.count - b_.size) && add(i); --i) {
    }
    return next.top + std::log(total);
}

void AllCountsMerger::merge(Logs a, Logs b, double* out, double* tilts) {
    a_ = a;
    b_ = b;
    const int64_t size = a.size + b.size;
    out[0] = a.at[0] + b.at[0];
    out[size] = a.at[a.size] + b.at[b.size];
    int64_t stride = 8;
    for (int64_t count = 1; count < size;) {
        const Place next = place(count);
        Place centre = ahead(next, stride);
        int64_t number = window(next, centre, out + count);
        while (number == 0 && centre.count > count) {  // not seen after all: from half as far
            stride = (centre.count - count) / 2;
            centre = place(count + stride);
            number = window(next, centre, out + count);
        }
        if (number == 0) {
            out[count] = alone(next);
            number = 1;
        }
        if (tilts) std::fill_n(tilts + count, number, centre.tilt);
        count += number;
        stride = std::max<int64_t>(stride, 1);
    }
}

}  // namespace kofn
