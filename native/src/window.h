// A tilted distribution seen through its characteristic function, near its mean.
//
// Two bounds make the trapezoid rule cheap and exact to rounding:
//
// * Bernstein: P(|S - mean| >= d) <= 2 e^{-a} for d >= a/3 + sqrt(a^2/9 + 2 a v), with v the variance. Points M that
//   reach this far beyond the wanted counts leave an alias of e^{-40}. (M = n + 1 has none at all.)
// * |w_i(u)|^2 = 1 - 4 p_i q_i sin^2(u/2) <= e^{-4 p_i q_i sin^2(u/2)}, so |phi(u)| <= e^{-2 v sin^2(u/2)}: frequencies
//   with sin^2(u/2) > 20 / v carry less than e^{-40}.
#pragma once

#include "kernels.h"
#include "tilt.h"

namespace kofn {

constexpr double negligible = 40.0;  // e^-40 = 4e-18: below rounding

// Distance from the mean beyond which, by Bernstein's bound, a count has probability below 2 e^-exponent.
double radius(double variance, double exponent);

// The frequencies that a tilted bag of this variance and size needs, and no instances yet. Counts up to `reach` from
// its mean will be exact; others mean nothing.
void choose_frequencies(const Kernels& kernels, double variance, int64_t size, double reach, Spectrum& spectrum);

// The same, with the distribution of a bag under this tilt filled in.
void look(const Kernels& kernels, const Tilted& tilted, const Bag& bag, double reach, Spectrum& spectrum);

}  // namespace kofn
