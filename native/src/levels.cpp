#include "levels.h"

#include "kofn.h"

namespace kofn {

int levels() {
    int mask = KOFN_BASELINE;
#ifdef KOFN_X86
    // The compiler's own test, which also asks whether the operating system saves the wide registers.
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) mask |= KOFN_AVX2;
    if ((mask & KOFN_AVX2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        mask |= KOFN_AVX512;
#endif
    return mask;
}

const Kernels* kernels_of(int level) {
    const int mask = levels();
    const bool one_bit = (level & (level - 1)) == 0;
    if (level != 0 && !(one_bit && (level & mask))) return nullptr;  // 6 is no level, though 2 may be
    const int wanted = level == 0 ? mask : level;
#ifdef KOFN_X86
    if (wanted & KOFN_AVX512) return &kernels_avx512;
    if (wanted & KOFN_AVX2) return &kernels_avx2;
#endif
    return wanted & KOFN_BASELINE ? &kernels_baseline : nullptr;
}

}  // namespace kofn
