// The tilt that makes a wanted count the mean of the tilted distribution.
//
// Adding one number t to every logit multiplies P(S = s) by e^{ts} and a constant that does not depend on s, so the
// tilted distribution knows everything about the original one. With t chosen such that the mean of S is the wanted
// count, that count is one of the likeliest values, and nothing that is computed of it is ever tiny.
#pragma once

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "bags.h"
#include "kernels.h"

namespace kofn {

// A bag under a tilt.
struct Tilted {
    double tilt;
    const double *p, *q;
    Moments moments;

    // log P(S = s) - log P~(S = s) with P~ the tilted distribution: sum_i [softplus(x_i) - softplus(z_i)] - t s with x
    // = z
    // + t.
    //
    // From softplus(x) = max(x, 0) + log(1 + e^{-|x|}) follows
    //
    //     softplus(x) - softplus(z) - t [x > 0]  =  log((1 + e^{-|x|}) / (1 + e^{-|z|}))  -  |z| [x and z differ in
    //     sign].
    //
    // The last is what the likeliest labels under the tilt cost without it: all of one sign, where the sums of softplus
    // and t s, which can be in the millions when log P is near zero, would cancel. Ties at logits in the thousands
    // still can, with t times the number of ones that the likeliest labels lack; so these two are kept to twice the
    // digits.
    double back(int64_t s) const {
        const double lack = moments.above - static_cast<double>(s), product = tilt * lack;
        const double product_low = std::fma(tilt, lack, -product);
        return moments.logs + ((product - moments.cost) + (product_low - moments.cost_low));
    }
};

// The bag as it is, under no tilt.
Tilted untilted(const Kernels& kernels, const Bag& bag);

// The bag under a given tilt, written to p and q.
Tilted tilted(const Kernels& kernels, const Bag& bag, double tilt, double* p, double* q);

// What the search for a tilt asks of a bag, whether that lies in one piece or in many.
struct Tiltable {
    int64_t people;
    std::function<Range()> range;
    std::function<Tilted(double tilt)> at;
    std::function<std::vector<std::pair<double, double>>()>
        rows;  // logits and their copies; none if they are not at hand
};

// A tilt under which |mean - target| is at most one standard deviation, found from `start`, which may be the result.
//
// One standard deviation is near enough: if all the mass lay below s, S = (s - 1) - S' with S' a count of mean m and
// variance v < m, so (s - E S)^2 = (1 + m)^2 >= 4 m > 4 v. A count within one standard deviation of the mean is
// therefore never out of reach; its tilted probability is comparable to the largest one.
Tilted solve_tilt(const Tiltable& bag, double target, const Tilted& start);

// The same for a bag in one piece. p and q are for the result.
Tilted solve_tilt(const Kernels& kernels, const Bag& bag, double target, const Tilted& start, double* p, double* q);

}  // namespace kofn
