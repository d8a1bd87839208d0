#include "levels.h"

#include "kofn.h"

#ifdef KOFN_X86
#include <cpuid.h>
#endif

namespace kofn {

#ifdef KOFN_X86
namespace {

// Asked of the processor rather than by __builtin_cpu_supports: that needs a table of the compiler's run-time library,
// which the one of the cross-compiler for wheels does not have.
int detect() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return KOFN_BASELINE;
    const bool fma = c & bit_FMA, xgetbv = c & bit_OSXSAVE;
    if (!fma || !xgetbv || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return KOFN_BASELINE;
    // Which registers the operating system saves: bits 1 and 2 for 256 bits, 5 to 7 for the rest of AVX-512.
    unsigned saved, high;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & 0x06) != 0x06) return KOFN_BASELINE;
    const unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    const bool wide = (saved & 0xe0) == 0xe0 && (b & avx512) == avx512;
    return KOFN_BASELINE | KOFN_AVX2 | (wide ? KOFN_AVX512 : 0);
}

}  // namespace
#endif

int levels() {
#ifdef KOFN_X86
    static const int mask = detect();
    return mask;
#else
    return KOFN_BASELINE;
#endif
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
