#include "large_bag.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "parallel.h"
#include "window.h"

namespace kofn {
namespace {

constexpr int64_t chunk_size = 16384;  // what a pass needs of a chunk stays in the cache
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

void add(Moments& all, const Moments& part) {
    all.mean += part.mean;
    all.variance += part.variance;
    all.widest = std::max(all.widest, part.widest);
    all.above += part.above;
    all.logs += part.logs;
    const double cost = all.cost + part.cost, seen = cost - all.cost;  // Knuth's two-sum
    all.cost_low += part.cost_low + ((all.cost - (cost - seen)) + (part.cost - seen));
    all.cost = cost;
}

void add(LargeBag::Survey& all, const LargeBag::Survey& part) {
    add(all.moments, part.moments);
    all.range = {std::min(all.range.low, part.range.low), std::max(all.range.high, part.range.high)};
    all.instances += part.instances;
    all.size += part.size;
    all.ones += part.ones;
    all.broken += part.broken;
}

// The characteristic function at the frequencies of a spectrum, times e^{-iu centre}: the whole has the product of all
// parts and the sum of their centres.
struct Phi {
    int64_t centre;
    double re[Spectrum::capacity], im[Spectrum::capacity];

    explicit Phi(const Spectrum& spectrum = {}) : centre(spectrum.centre) {
        std::copy_n(spectrum.re, Spectrum::capacity, re);
        std::copy_n(spectrum.im, Spectrum::capacity, im);
    }
};

void add(Phi& all, const Phi& part) {
    all.centre += part.centre;
    for (int64_t m = 0; m < Spectrum::capacity; ++m) {
        const double re = all.re[m] * part.re[m] - all.im[m] * part.im[m];
        all.im[m] = all.re[m] * part.im[m] + all.im[m] * part.re[m];
        all.re[m] = re;
    }
}

void add(double& all, double part) { all += part; }

}  // namespace

LargeBag::LargeBag(const Kernels& kernels, const EventCall& call, int64_t j, int threads, Team team)
    : kernels_(kernels),
      call_(call),
      j_(j),
      threads_(threads),
      team_(team),
      scratch_(static_cast<std::size_t>(threads)) {}

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

// The same, put together, of all chunks of all processes. `none` is what none of them would give.
template <class Result, class Work>
Result LargeBag::combine(Result none, Work work) {
    Result all = none;
    for (const Result& part : map<Result>(work)) add(all, part);
    if (!team_.gather) return all;
    std::vector<Result> everywhere(static_cast<std::size_t>(team_.processes));
    if (team_.gather(&all, sizeof(Result), everywhere.data()) != 0)
        throw std::runtime_error("the processes did not meet");
    for (const Result& part : everywhere) add(none, part);
    return none;
}

// The gathered instances with their own probabilities.
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
    const Survey nothing{{}, {infinity, -infinity}, 0, 0, 0, 0};
    all_ = combine(nothing, [&](Scratch& scratch, int64_t c) {
        const Bag bag = scratch.bag(kernels_);
        const Range range = bag.size > 0 ? kernels_.range(bag.z, bag.size) : nothing.range;
        const Moments moments = kernels_.moments(bag.p, bag.q, nullptr, bag.size);
        const Undecided& all = scratch.undecided;
        return Survey{moments, range, chunk(c).n, bag.size, all.ones(0), all.broken(0) ? 1 : 0};
    });
}

Tilted LargeBag::at(double tilt) {
    const Moments moments = combine(Moments{}, [&](Scratch& scratch, int64_t) {
        double* p = scratch.tilted.reserve(2 * chunk_size);
        return tilted(kernels_, scratch.bag(kernels_), tilt, p, p + chunk_size).moments;
    });
    return {tilt, nullptr, nullptr, moments};
}

// Only where the search for a tilt asks for order statistics, the one thing that is neither sum nor product: a bag on
// several processes has none.
std::vector<std::pair<double, double>> LargeBag::rows() {
    if (team_.gather) return {};
    std::vector<std::pair<double, double>> all;
    for (const std::vector<double>&part : map<std::vector<double>>([](Scratch& scratch, int64_t) {
             const Bag bag = scratch.undecided.bag(0);
             return std::vector<double>(bag.z, bag.z + bag.size);
         }))
        for (const double z : part) all.emplace_back(z, 1.0);
    return all;
}

// posterior(scratch, bag, out) fills in the posteriors of a chunk's undecided instances.
template <class Posterior>
void LargeBag::write(Posterior posterior) {
    if (!call_.of_instances()) return;
    map<char>([&](Scratch& scratch, int64_t c) {
        double* out = scratch.posterior.reserve(chunk_size);
        const Bag bag = scratch.bag(kernels_);
        posterior(scratch, bag, out);
        call_.put_instances(kernels_, chunk(c), call_.input.start(j_) + c * chunk_size, 0, 1, scratch.undecided, out,
                            bag.p);
        return char{};
    });
}

double LargeBag::all_alike(double sign) {
    return combine(0.0, [&](Scratch& scratch, int64_t) {
        const Bag bag = scratch.undecided.bag(0);
        return kernels_.log_sigmoid(bag.z, nullptr, bag.size, sign);
    });
}

double LargeBag::solve_open(Wanted wanted) {
    const Tilted plain{0.0, nullptr, nullptr, all_.moments};
    const Tiltable bag{all_.size, [&] { return all_.range; }, [&](double tilt) { return at(tilt); },
                       [&] { return rows(); }};
    const Tilted view = solve_tilt(bag, wanted.nearest(all_.moments.mean), plain);
    const Sight sight(view, wanted);
    Spectrum spectrum{};
    choose_frequencies(kernels_, view.moments.variance, all_.size, sight.reach, spectrum);
    const Phi phi = combine(Phi(spectrum), [&](Scratch& scratch, int64_t) {
        Spectrum part = spectrum;
        const Bag bag = scratch.tilted_bag(kernels_, view.tilt);
        kernels_.characteristic(bag.p, bag.q, bag.size, part);
        return Phi(part);
    });
    spectrum.centre = phi.centre;
    std::copy_n(phi.re, Spectrum::capacity, spectrum.re);
    std::copy_n(phi.im, Spectrum::capacity, spectrum.im);
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
    const Wanted wanted = call_.wanted(j_, all_.instances, all_.ones);
    const auto every = [](double value) {
        return [value](Scratch&, const Bag& bag, double* out) { std::fill_n(out, bag.size, value); };
    };
    const auto nothing_new = [](Scratch&, const Bag& bag, double* out) { std::copy_n(bag.p, bag.size, out); };
    double value = 0.0;
    switch (case_of(wanted, all_.size, all_.broken > 0)) {
        case Case::open:
            value = solve_open(wanted.possible(all_.size));
            break;
        case Case::none:
            value = all_alike(-1.0), write(every(0.0));
            break;
        case Case::all:
            value = all_alike(1.0), write(every(1.0));
            break;
        case Case::anything:
            value = 0.0, write(nothing_new);
            break;
        case Case::impossible:
            value = -infinity, write(nothing_new);
            break;
        case Case::broken:
            value = not_a_number, call_.put_unknown(call_.input.start(j_), call_.input.size(j_));
            break;
    }
    call_.put_value(j_, value);
}

}  // namespace kofn
