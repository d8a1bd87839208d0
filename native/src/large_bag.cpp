#include "large_bag.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "instances.h"
#include "parallel.h"
#include "window.h"

namespace kofn {
namespace {

constexpr int64_t chunk_size = 16384;  // what a pass needs of a chunk stays in the cache
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Moments together(const std::vector<Moments>& parts) {
    Moments all{};
    for (const Moments& part : parts) {
        all.mean += part.mean;
        all.variance += part.variance;
        all.widest = std::max(all.widest, part.widest);
        all.above += part.above;
        all.logs += part.logs;
        const double cost = all.cost + part.cost, seen = cost - all.cost;  // Knuth's two-sum
        all.cost_low += part.cost_low + ((all.cost - (cost - seen)) + (part.cost - seen));
        all.cost = cost;
    }
    return all;
}

// Each part is e^{-iu centre} times a product of factors: the whole has the product of all, and the sum of the centres.
Spectrum together(const std::vector<Spectrum>& parts) {
    Spectrum all = parts.front();
    for (std::size_t k = 1; k < parts.size(); ++k) {
        all.centre += parts[k].centre;
        for (int64_t m = 0; m < all.used; ++m) {
            const double re = all.re[m] * parts[k].re[m] - all.im[m] * parts[k].im[m];
            all.im[m] = all.re[m] * parts[k].im[m] + all.im[m] * parts[k].re[m];
            all.re[m] = re;
        }
    }
    return all;
}

}  // namespace

LargeBag::LargeBag(const Kernels& kernels, const IntervalCall& call, int64_t j, int threads)
    : kernels_(kernels), call_(call), j_(j), threads_(threads), scratch_(static_cast<std::size_t>(threads)) {}

int64_t LargeBag::chunks() const { return (call_.input.size(j_) + chunk_size - 1) / chunk_size; }

// A chunk as a bag of its own.
Input LargeBag::chunk(int64_t c) const {
    const int64_t first = c * chunk_size, size = std::min(chunk_size, call_.input.size(j_) - first);
    return call_.input.part(call_.input.start(j_) + first, size);
}

// work(scratch, chunk) for all chunks, their undecided instances gathered: what it returns, in the order of the chunks.
template <class Result, class Work>
std::vector<Result> LargeBag::map(Work work) {
    std::vector<Result> results(static_cast<std::size_t>(chunks()));
    share(chunks(), threads_, [&](int worker) {
        return [&, worker](int64_t c) {
            Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
            scratch.undecided.gather(kernels_, chunk(c), 0, 1);
            results[static_cast<std::size_t>(c)] = work(scratch, c);
        };
    });
    return results;
}

// The gathered instances, and with their own probabilities.
Bag LargeBag::Scratch::bag(const Kernels& kernels) {
    undecided.find_probabilities(kernels);
    return undecided.bag(0);
}

// The gathered instances with probabilities under a tilt.
Bag LargeBag::Scratch::tilted_bag(const Kernels& kernels, double tilt) {
    const Bag bag = undecided.bag(0);
    double* p = tilted.reserve(2 * chunk_size);
    kernels.sigmoid(bag.z, bag.size, tilt, p, p + chunk_size);
    return {bag.z, p, p + chunk_size, bag.size};
}

void LargeBag::survey() {
    const auto parts = map<Survey>([&](Scratch& scratch, int64_t) {
        const Bag bag = scratch.bag(kernels_);
        const Range range = bag.size > 0 ? kernels_.range(bag.z, bag.size) : Range{infinity, -infinity};
        const Moments moments = kernels_.moments(bag.p, bag.q, bag.size);
        return Survey{moments, range, bag.size, scratch.undecided.ones(0), scratch.undecided.broken(0)};
    });
    std::vector<Moments> moments;
    range_ = {infinity, -infinity};
    for (const Survey& part : parts) {
        moments.push_back(part.moments);
        range_ = {std::min(range_.low, part.range.low), std::max(range_.high, part.range.high)};
        size_ += part.size;
        ones_ += part.ones;
        broken_ = broken_ || part.broken;
    }
    plain_ = together(moments);
}

Tilted LargeBag::at(double tilt) {
    const auto parts = map<Moments>([&](Scratch& scratch, int64_t) {
        double* p = scratch.tilted.reserve(2 * chunk_size);
        return tilted(kernels_, scratch.bag(kernels_), tilt, p, p + chunk_size).moments;
    });
    return {tilt, nullptr, nullptr, together(parts)};
}

// Only where the search for a tilt asks for order statistics, which is the one thing that is neither sum nor product.
std::vector<double> LargeBag::logits() {
    const auto parts = map<std::vector<double>>([](Scratch& scratch, int64_t) {
        const Bag bag = scratch.undecided.bag(0);
        return std::vector<double>(bag.z, bag.z + bag.size);
    });
    std::vector<double> all;
    all.reserve(static_cast<std::size_t>(size_));
    for (const std::vector<double>& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

// posterior(scratch, bag, out) fills in the posteriors of a chunk's undecided instances.
template <class Posterior>
void LargeBag::write(Posterior posterior) {
    if (!call_.results.any()) return;
    map<char>([&](Scratch& scratch, int64_t c) {
        double* out = scratch.posterior.reserve(chunk_size);
        posterior(scratch, scratch.bag(kernels_), out);
        const Results results = call_.results.part(call_.input.wide, call_.input.start(j_) + c * chunk_size);
        write_instances(kernels_, chunk(c), 0, 1, scratch.undecided, out, results);
        return char{};
    });
}

double LargeBag::all_alike(double sign) {
    const auto parts = map<double>([&](Scratch& scratch, int64_t) {
        const Bag bag = scratch.undecided.bag(0);
        return kernels_.log_sigmoid(bag.z, bag.size, sign);
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    return total;
}

double LargeBag::solve_open(Wanted wanted) {
    const Tilted plain{0.0, nullptr, nullptr, plain_};
    const Tilted view = solve_tilt(*this, wanted.nearest(plain_.mean), plain);
    const Sight sight(view, wanted);
    Spectrum empty;
    choose_frequencies(kernels_, view.moments.variance, size_, sight.reach, empty);
    Spectrum spectrum = together(map<Spectrum>([&](Scratch& scratch, int64_t) {
        Spectrum part = empty;
        const Bag bag = scratch.tilted_bag(kernels_, view.tilt);
        kernels_.characteristic(bag.p, bag.q, bag.size, part);
        return part;
    }));
    kernels_.complete(spectrum);
    std::vector<double> weights(static_cast<std::size_t>(2 * sight.number));
    const double total = sight.weigh(kernels_, spectrum, weights.data());
    const Sides sides = kernels_.make_sides(spectrum, sight.first, sight.number, weights.data());
    write([&](Scratch& scratch, const Bag& bag, double* out) {
        std::fill_n(out, bag.size, 0.0);
        const Bag here = scratch.tilted_bag(kernels_, view.tilt);
        kernels_.pull(here.p, here.q, bag.size, view.moments.widest, spectrum, sides, out);
    });
    return std::log(total) + view.back(sight.anchor);
}

void LargeBag::solve() {
    survey();
    const Wanted wanted = call_.wanted(j_, ones_);
    const auto every = [](double value) {
        return [value](Scratch&, const Bag& bag, double* out) { std::fill_n(out, bag.size, value); };
    };
    const auto nothing_new = [](Scratch&, const Bag& bag, double* out) { std::copy_n(bag.p, bag.size, out); };
    double value = 0.0;
    switch (case_of(wanted, size_, broken_)) {
        case Case::open: value = solve_open(wanted.possible(size_)); break;
        case Case::none: value = all_alike(-1.0), write(every(0.0)); break;
        case Case::all: value = all_alike(1.0), write(every(1.0)); break;
        case Case::anything: value = 0.0, write(nothing_new); break;
        case Case::impossible: value = -infinity, write(nothing_new); break;
        case Case::broken: value = not_a_number, write_nothing_known(call_.input, j_, call_.results); break;
    }
    call_.put_value(j_, value);
}

}  // namespace kofn
