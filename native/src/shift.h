// The factor by which a bag's common, normal shift of its logits changes the probability of a count.
#pragma once

#include <cstdint>

#include "bags.h"
#include "kernels.h"
#include "tilt.h"

namespace kofn {

struct ShiftCall {
    Input input;
    const int64_t* counts;
    const double* sigma;              // standard deviation of each bag's shift
    double *value, *slope, *by_sigma;  // of each bag, of each instance, of each bag; the last two may be null, together
};

// Does runs of bags, one after the other, with the same scratch memory.
class ShiftSolver {
public:
    ShiftSolver(const Kernels& kernels, const ShiftCall& call) : kernels_(kernels), call_(call) {}
    void run(int64_t first, int64_t last);

private:
    struct Point {
        double z, g, slope, curvature;  // g, g', g'' at z (shift.cpp)
    };

    double bag(int64_t j, const Bag& bag, double count, double sigma);
    Point at(const Bag& bag, double count, double sigma, double z);
    Point mode(const Bag& bag, double count, double sigma);
    double end(const Bag& bag, double count, double sigma, const Point& mode, double side);
    double integrate(const Bag& bag, double count, double sigma, double low, double high, int64_t steps);

    const Kernels& kernels_;
    const ShiftCall& call_;
    int64_t first_ = 0, shifts_ = 0;
    Undecided bags_;
    Buffer tilted_, nodes_, means_;
    double *z_ = nullptr, *a_ = nullptr, *b_ = nullptr, *terms_ = nullptr, *leaning_ = nullptr;  // in nodes_
};

}  // namespace kofn
