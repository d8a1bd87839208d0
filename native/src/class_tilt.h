// The tilt that makes wanted class counts the mean of the tilted distribution.
//
// Adding t_c to every logit of class c multiplies P(K = k) by e^{t.k} and a constant that does not depend on k. The
// tilt with E K = k minimises the convex
//
//     f(t) = sum_i log sum_c e^{x_ic + t_c} - t.k,   gradient E K - k,  Hessian the covariance of K.
//
// Under it the counts are at least as probable as if all instances were alike: the matrix that has column c k_c times,
// with entries p_ic / k_c, is doubly stochastic, and P(K = k) is its permanent times prod k_c^{k_c} / k_c!. By van der
// Waerden's bound the permanent is at least n! / n^n, which is the multinomial probability of k with probabilities k_c
// / n.
#pragma once

#include <cstdint>
#include <vector>

#include "buffer.h"
#include "kernels.h"

namespace kofn {

// A bag under a tilt. Matrices are rows of `classes` numbers.
struct TiltedClasses {
    std::vector<double> tilt, mean, covariance;
    double* p = nullptr;  // size * classes: probabilities under the tilt
    double back = 0.0;    // log P(K = k) - log P~(K = k) = f(t)
};

class ClassTilt {
public:
    explicit ClassTilt(const Kernels& kernels) : kernels_(kernels) {}

    // With k within a fraction of a standard deviation of the mean, if there is such a tilt. `log_p` is size * classes.
    const TiltedClasses& solve(const double* log_p, int64_t size, int64_t classes, const int64_t* counts);

private:
    void look(double temperature);
    bool near(double temperature);
    void descend(double temperature);

    const Kernels& kernels_;
    const double* log_p_ = nullptr;
    const int64_t* counts_ = nullptr;
    int64_t size_ = 0, classes_ = 0;
    TiltedClasses at_;
    std::vector<double> step_, factor_, start_;
    double decrement_ = 0.0;  // g' H^-1 g: squared distance of k from the mean, in standard deviations
    Buffer p_, sums_;
};

}  // namespace kofn
