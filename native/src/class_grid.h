// The frequencies that carry the distribution of class counts near its mean.
//
// K_0 follows from the others; d = classes - 1 whole numbers L = U K are left, U unimodular and chosen such that their
// covariance is reduced (no correlation beyond 1/2 or so), because K_1 + K_2 may be known far better than either. The
// trapezoid rule with M_1 x .. x M_d points, u = U' (2 pi m_j / M_j), has the aliases L + M z, z whole. Two bounds:
//
// * Bennett: P(L_j - mean >= x) <= exp(-(v / r^2) h(r x / v)), h(y) = (1 + y) log(1 + y) - y, with v the variance of
// L_j and r
//   the width of one instance's share in it. M_j reaches as far.
// * |w_i|^2 = 1 - 4 sum_{c < e} p_ic p_ie sin^2((u_c - u_e) / 2), so |phi(u)| <= exp(2 sum_{c < e} cov(K_c, K_e)
// sin^2(..)).
//   Frequencies below e^-33 are left out; those left lie in a box that the inverse covariance tells.
//
// phi(-u) is the conjugate of phi(u): each pair is counted once, twice.
#pragma once

#include <cstdint>
#include <vector>

#include "class_tilt.h"
#include "kernels.h"

namespace kofn {

class ClassGrid {
public:
    // The frequencies of a tilted bag of `size` instances whose counts are asked for; at most `most` of them, or none.
    bool choose(const TiltedClasses& bag, int64_t size, int64_t classes, const int64_t* counts, int lanes, double most);

    ClassFrequencies frequencies() const { return {number_, cosine_.data(), sine_.data(), re_.data(), im_.data()}; }

private:
    int64_t number_ = 0;
    std::vector<double> cosine_, sine_, re_, im_;
};

}  // namespace kofn
