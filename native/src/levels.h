// Which instruction sets this build has and this machine can run.
#pragma once

#include "kernels.h"

namespace kofn {

int levels();                          // a mask of KOFN_BASELINE, KOFN_AVX2, KOFN_AVX512
const Kernels* kernels_of(int level);  // of one level, or of the best for 0; null if this machine cannot run it

}  // namespace kofn
