#include "window.h"

#include <algorithm>
#include <cmath>

namespace kofn {

double radius(double variance, double exponent) {
    const double third = exponent / 3;
    return third + std::sqrt(third * third + 2 * exponent * variance);
}

void choose_frequencies(const Kernels& kernels, double variance, int64_t size, double reach, Spectrum& spectrum) {
    constexpr double pi = 3.14159265358979323846;
    const auto wanted = static_cast<int64_t>(std::ceil(radius(variance, negligible) + reach));
    spectrum.points = std::min(wanted, size + 1) | 1;  // odd: cos(u/2) is never 0, so no w_i is ever 0
    const double cut = std::asin(std::sqrt(std::min(1.0, negligible / 2 / variance))) / pi;
    const auto last = static_cast<int64_t>(std::ceil(cut * static_cast<double>(spectrum.points)));
    spectrum.used = std::min<int64_t>({last, spectrum.points / 2, Spectrum::capacity - 1}) + 1;
    kernels.frequencies(spectrum);
}

void look(const Kernels& kernels, const Tilted& tilted, const Bag& bag, double reach, Spectrum& spectrum) {
    choose_frequencies(kernels, tilted.moments.variance, bag.people, reach, spectrum);
    if (bag.copies)
        kernels.characteristic_of_copies(tilted.p, tilted.q, bag.copies, bag.size, spectrum);
    else
        kernels.characteristic(tilted.p, tilted.q, bag.size, spectrum);
    kernels.complete(spectrum);
}

}  // namespace kofn
