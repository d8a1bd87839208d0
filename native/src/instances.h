// From the undecided instances of some bags to the caller's arrays.
#pragma once

#include <cstdint>

#include "bags.h"
#include "kernels.h"

namespace kofn {

// What is wanted of each instance, in the caller's arrays; either may be null.
struct Results {
    void* slope;  // float64 or float32 as the input is
    double* posterior;

    bool any() const { return slope || posterior; }
    Results part(bool wide, int64_t from) const {
        char* bytes = static_cast<char*>(slope);
        return {bytes ? bytes + from * static_cast<int64_t>(wide ? sizeof(double) : sizeof(float)) : nullptr,
                posterior ? posterior + from : nullptr};
    }
};

// The posteriors of the undecided instances of bags [first, last), and their slopes, to where the caller's bags have them.
// `posterior` may be changed. An instance of infinite logit is decided; of a bag with a NaN nothing is known.
void write_instances(const Kernels& kernels, const Input& input, int64_t first, int64_t last, const Undecided& bags,
                     double* posterior, Results results);

// NaN to all instances of one bag.
void write_nothing_known(const Input& input, int64_t j, Results results);

}  // namespace kofn
