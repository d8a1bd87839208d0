// One instruction set's table of kernels. Compiled once for each, with
//   KOFN_LANES  float64 numbers in a vector register,
//   KOFN_TABLE  the name of the table.
// No C++ header is included here or in the kernel_*.h files, and everything but the table is local to this unit: of an
// inline function that two units share the linker would keep one copy, maybe the one this machine cannot run.
#include "kernels.h"
#include "kernel_class_fourier.h"
#include "kernel_class_table.h"
#include "kernel_convolution.h"
#include "kernel_fourier.h"
#include "kernel_pointwise.h"
#include "kernel_random_effect.h"
#include "kernel_recursion.h"

namespace kofn {

extern const Kernels KOFN_TABLE;
const Kernels KOFN_TABLE = {
    lanes,
    widen,
    ordinary,
    sigmoid,
    log_all,
    exp_all,
    log_sigmoid,
    sum_abs,
    range,
    moments,
    tilt,
    tilt_copies,
    clamp,
    gradient<double>,
    gradient<float>,
    recursion_forward,
    recursion_backward,
    frequencies,
    characteristic,
    characteristic_of_copies,
    complete,
    inverse,
    make_sides,
    pull,
    lean,
    straighten,
    convolve,
    make_roots,
    square,
    effect_nodes,
    effect_terms,
    effect_weights,
    effect_means,
    class_table_one,
    class_table_many,
    class_fourier,
};

}  // namespace kofn
