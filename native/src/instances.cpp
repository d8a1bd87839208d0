#include "instances.h"

#include <limits>

namespace kofn {
namespace {

void write(const Input& input, Results results, int64_t at, double posterior, double slope) {
    if (results.posterior) results.posterior[at] = posterior;
    if (results.slope && input.wide) static_cast<double*>(results.slope)[at] = slope;
    if (results.slope && !input.wide) static_cast<float*>(results.slope)[at] = static_cast<float>(slope);
}

bool positive(const Input& input, int64_t at) {
    return input.wide ? static_cast<const double*>(input.logits)[at] > 0 : static_cast<const float*>(input.logits)[at] > 0;
}

}  // namespace

void write_nothing_known(const Input& input, int64_t j, Results results) {
    constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
    for (int64_t at = input.start(j); at < input.start(j + 1); ++at) write(input, results, at, not_a_number, not_a_number);
}

void write_instances(const Kernels& kernels, const Input& input, int64_t first, int64_t last, const Undecided& bags,
                     double* posterior, Results results) {
    const int64_t begin = input.start(first), number = bags.instances();
    if (bags.complete()) {
        if (results.posterior) kernels.clamp(posterior, number, results.posterior + begin);
        if (results.slope && input.wide)
            kernels.slope(posterior, bags.p(), number, static_cast<double*>(results.slope) + begin);
        else if (results.slope)
            kernels.slope_narrow(posterior, bags.p(), number, static_cast<float*>(results.slope) + begin);
        return;
    }
    kernels.clamp(posterior, number, posterior);
    for (int64_t j = 0; j < last - first; ++j) {
        if (bags.broken(j)) {
            write_nothing_known(input, first + j, results);
            continue;
        }
        for (int64_t at = input.start(first + j); at < input.start(first + j + 1); ++at)
            write(input, results, at, positive(input, at) ? 1.0 : 0.0, 0.0);
        for (int64_t i = bags.start(j); i < bags.start(j + 1); ++i)
            write(input, results, begin + bags.source(i), posterior[i], posterior[i] - bags.p()[i]);
    }
}

}  // namespace kofn
