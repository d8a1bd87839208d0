// What a bag's common, normal shift of its logits adds to the log-probability of a count.
#pragma once

#include <cstdint>
#include <vector>

#include "bags.h"
#include "kernels.h"
#include "tilt.h"

namespace kofn {

struct ShiftCall {
    Input input;
    const int64_t* counts;
    const double* sigma;               // standard deviation of each bag's shift
    double* mode;                      // of each bag: written, and nothing else, if it is not null
    const double* centre;              // a mode of each bag, at which its logits are taken
    double *value, *slope, *by_sigma;  // of each bag, of each instance, of each bag; the last two may be null, together
};

// Does runs of bags, one after the other, with the same scratch memory.
class ShiftSolver {
public:
    ShiftSolver(const Kernels& kernels, const ShiftCall& call) : kernels_(kernels), call_(call) {}
    void run(int64_t first, int64_t last);

private:
    // One count of one bag.
    struct Case {
        Bag bag;
        double count, sigma, centre, likely;  // likely: how many logits are positive
    };
    struct Point {
        double g, slope;  // of the logarithm of the integrand, g(0) = 0
    };

    Tilted look(const Bag& bag, double v);
    Point at(const Case& of, double zeta);
    double mode(const Bag& bag, double count, double sigma);
    double end(const Case& of, double side);
    void choose_panels(const Case& of);
    double integrate(const Case& of);
    void slopes(int64_t j, const Case& of);

    const Kernels& kernels_;
    const ShiftCall& call_;
    int64_t first_ = 0, nodes_ = 0;
    Undecided bags_;
    Buffer tilted_, parts_, room_, means_;
    std::vector<double> left_, width_;  // of the panels
    // Of each node: zeta, e^{-|v|} on either side, the factor of the likeliest labels, the term of the sum, and that times zeta.
    double *zeta_ = nullptr, *a_ = nullptr, *b_ = nullptr, *e_ = nullptr, *terms_ = nullptr, *leaning_ = nullptr;
};

}  // namespace kofn
