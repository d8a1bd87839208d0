// What a bag's random effect, a common normal shift of its logits, adds to the log-probability of a count.
#pragma once

#include <cstdint>
#include <vector>

#include "bags.h"
#include "kernels.h"
#include "tilt.h"

namespace kofn {

// One count of one bag after the other, with the same scratch memory. The three calls are made in this order.
class RandomEffect {
public:
    explicit RandomEffect(const Kernels& kernels) : kernels_(kernels) {}

    // The bag under about its likeliest shift given the count, in scratch memory.
    Tilted centre(const Bag& bag, double count, double sigma);

    // log P(count) with the effect, less that without one of the bag as it is under that shift.
    double integrate(const Bag& centred, double variance);

    // To `means`, E[sigmoid(x_i + u) | count]. Returns d log P(count) / d sigma.
    double derivatives(const Bag& centred, double* means);

private:
    struct Point {
        double g, slope;  // of the logarithm of the integrand, g(0) = 0
    };

    Tilted look(const Bag& bag, double v);
    Point at(const Bag& bag, double zeta);
    double end(const Bag& bag, double side);
    bool choose_steps(const Bag& bag, double variance);
    void choose_panels(const Bag& bag);
    void add_node(double zeta, double weight) { nodes_.push_back(zeta), weights_.push_back(weight); }
    bool is_near(double zeta) const;

    const Kernels& kernels_;
    double count_ = 0, sigma_ = 0, centre_ = 0, likely_ = 0;  // likely: how many logits are positive
    std::vector<double> nodes_, weights_;                     // the zeta of each node, and its weight in the integral
    Buffer tilted_, room_;
    // Of each node: e^{-|v|} on either side, that of both less one; its term of the sum, and that times z.
    double *a_ = nullptr, *b_ = nullptr, *up_ = nullptr, *down_ = nullptr, *terms_ = nullptr, *leaning_ = nullptr;
};

}  // namespace kofn
