// Vectors of KOFN_LANES float64 numbers and the elementary functions on them. Only for the kernel units.
//
// Compiler vector extensions, so that one source serves every instruction set. The functions take the arguments that
// the kernels have and no others: no special cases are tested that cannot occur.
#pragma once

#include <stdint.h>

namespace {

constexpr int lanes = KOFN_LANES;
typedef double Lanes __attribute__((vector_size(KOFN_LANES * 8)));
typedef int64_t Mask __attribute__((vector_size(KOFN_LANES * 8)));   // what comparisons give: 0 or -1
typedef uint64_t Bits __attribute__((vector_size(KOFN_LANES * 8)));  // unsigned, so that overflow is defined
typedef double LooseLanes __attribute__((vector_size(KOFN_LANES * 8), aligned(8), may_alias));

constexpr double log2_of_e = 1.4426950408889634;
constexpr double ln2_high = 6.93147180369123816490e-01;  // 32 bits: times an exponent it is exact
constexpr double ln2_low = 1.90821492927058770002e-10;
constexpr double rounder = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits

inline Lanes splat(double x) { return Lanes{} + x; }
inline Lanes load(const double* x) { return *reinterpret_cast<const LooseLanes*>(x); }
inline void store(double* x, Lanes v) { *reinterpret_cast<LooseLanes*>(x) = v; }

inline Lanes load_some(const double* x, int64_t number, double fill) {
    if (number >= lanes) return load(x);
    Lanes v = splat(fill);
    for (int64_t k = 0; k < number; ++k) v[k] = x[k];
    return v;
}

inline void store_some(double* x, int64_t number, Lanes v) {
    if (number >= lanes) return store(x, v);
    for (int64_t k = 0; k < number; ++k) x[k] = v[k];
}

inline Lanes max(Lanes a, Lanes b) { return a > b ? a : b; }
inline Lanes min(Lanes a, Lanes b) { return a < b ? a : b; }
inline Lanes abs(Lanes a) { return (Lanes)((Bits)a & (Bits{} + (UINT64_MAX >> 1))); }

inline double sum(Lanes v) {
    double total = v[0];
    for (int k = 1; k < lanes; ++k) total += v[k];
    return total;
}

inline double largest(Lanes v) {
    double best = v[0];
    for (int k = 1; k < lanes; ++k) best = v[k] > best ? v[k] : best;
    return best;
}

// A sum that keeps what rounding takes from it (Knuth's two-sum).
template <class Number>
struct Exact {
    Number high{}, low{};

    void add(Number x) {
        const Number next = high + x, seen = next - high;
        low += (high - (next - seen)) + (x - seen);
        high = next;
    }
};

inline Exact<double> sum(const Exact<Lanes>& v) {
    Exact<double> total;
    for (int k = 0; k < lanes; ++k) total.add(v.high[k]);
    total.low += sum(v.low);
    return total;
}

inline Lanes counting() {
    Lanes v{};
    for (int k = 0; k < lanes; ++k) v[k] = k;
    return v;
}

// e^x = 2^k (1 + rest) with |log(1 + rest)| <= ln(2) / 2; what is to be added to an exponent is k.
struct Power {
    Bits k;
    Lanes rest;
};

inline Power power_of_e(Lanes x) {
    // x = k ln 2 + r with |r| <= ln(2) / 2; e^r = 1 + r + r^2 (polynomial of degree 9, error 2e-17).
    const Lanes shifted = x * log2_of_e + rounder;
    const Lanes k = shifted - rounder;
    const Lanes r = (x - k * ln2_high) - k * ln2_low;
    const Lanes r2 = r * r, r4 = r2 * r2;
    const Lanes c01 = r * 0.16666666666666669 + 0.5000000000000001;
    const Lanes c23 = r * 0.008333333333330062 + 0.04166666666662413;
    const Lanes c45 = r * 0.00019841269863053618 + 0.0013888888917213717;
    const Lanes c67 = r * 2.7557268459997064e-06 + 2.4801521295954376e-05;
    const Lanes c89 = r * 2.510038549551032e-08 + 2.7620088445409746e-07;
    const Lanes polynomial = (c01 + r2 * c23) + r4 * ((c45 + r2 * c67) + r4 * c89);
    return {(Bits)shifted << 52, r + r2 * polynomial};  // the low bits of `shifted` are k
}

// e^x for x <= 0 (or -inf), to 1 ulp; 0 below -708, where float64 runs out of normal numbers.
inline Lanes exp_nonpositive(Lanes x) {
    const Power power = power_of_e(x);
    return x < -708.0 ? Lanes{} : (Lanes)((Bits)(1.0 + power.rest) + power.k);
}

// e^x - 1 likewise, to 2 ulp however near to 0 it is.
inline Lanes expm1_nonpositive(Lanes x) {
    const Power power = power_of_e(x);
    const Lanes scale = (Lanes)((Bits)splat(1.0) + power.k);
    return x < -708.0 ? splat(-1.0) : scale * power.rest + (scale - 1.0);
}

// log x for positive normal x, to 1 ulp; -inf at 0. The method and coefficients of FreeBSD's e_log.c.
inline Lanes log_positive(Lanes x) {
    // x = 2^k m with sqrt(1/2) <= m < sqrt(2). Biased by 1023, so that a logical shift will do: AVX2 has no other.
    const Bits half_root = Bits{} + 0x3fe6a09e667f3bcd, one = Bits{} + 0x3ff0000000000000;
    const Bits exponent = ((Bits)x - half_root + one) >> 52;
    const Lanes m = (Lanes)((Bits)x - (exponent << 52) + one);
    const Lanes k = (Lanes)(exponent + (Bits)splat(rounder)) - (rounder + 1023.0);
    const Lanes f = m - 1.0;
    const Lanes s = f / (2.0 + f), z = s * s, w = z * z;
    const Lanes even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const Lanes odd =
        z * (6.666666666666735130e-01 +
             w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const Lanes half_square = 0.5 * f * f;
    const Lanes value = k * ln2_high - ((half_square - (s * (half_square + (even + odd)) + k * ln2_low)) - f);
    return x == 0.0 ? splat(-__builtin_inf()) : value;
}

// log(1 + y) for -1 < y, to 2 ulp however small y is: what 1 + y rounds away is put back to first order.
inline Lanes log1p(Lanes y) {
    const Lanes u = 1.0 + y;
    return log_positive(u) + (y - (u - 1.0)) / u;
}

// The angle of a positive x and a y of either sign, to 2 ulp. The method and coefficients of Cephes' atan.c.
inline Lanes angle_of(Lanes y, Lanes x) {
    const Lanes size = abs(y);
    const Mask steep = size > 2.414213562373095 * x, half = size > 0.66 * x;  // above 3 pi / 8, and half way to pi / 4
    const Lanes t = steep ? -x / size : half ? (size - x) / (size + x) : size / x;
    const Lanes z = t * t;
    const Lanes above =
        (((-8.750608600031904122785e-01 * z - 1.615753718733365076637e+01) * z - 7.500855792314704667340e+01) * z -
         1.228866684490136173410e+02) *
            z -
        6.485021904942025371773e+01;
    const Lanes below =
        ((((z + 2.485846490142306297962e+01) * z + 1.650270098316988542046e+02) * z + 4.328810604912902668951e+02) * z +
         4.853903996359136964868e+02) *
            z +
        1.945506571482613964425e+02;
    const Lanes from = steep ? splat(1.5707963267948966) : half ? splat(0.7853981633974483) : Lanes{};
    const Lanes low = steep ? splat(6.123233995736766e-17) : half ? splat(3.061616997868383e-17) : Lanes{};
    const Lanes value = from + (t * (z * above / below) + low + t);
    return y < 0.0 ? -value : value;
}

struct Complex {
    Lanes re, im;
};

inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline Complex conjugate(Complex a) { return {a.re, -a.im}; }
inline Complex times_i(Complex a) { return {-a.im, a.re}; }

struct Turn {
    Lanes cosine, sine;
};

// Cosine and sine of 2 pi k / points for integer k with |k| < 2^50: reduced in integers, so no digit is lost.
inline Turn turn(Lanes k, double points) {
    const Lanes four_k = 4.0 * k;
    const Lanes shifted = four_k * (1.0 / points) + rounder;
    const Lanes quarters = shifted - rounder;
    const Lanes angle = (four_k - quarters * points) / points * 1.5707963267948966;  // within +-pi/4
    const Lanes z = angle * angle;
    // Polynomials of FreeBSD's k_sin.c and k_cos.c.
    const Lanes s = angle + angle * z *
                                (-1.66666666666666324348e-01 +
                                 z * (8.33333333332248946124e-03 +
                                      z * (-1.98412698298579493134e-04 +
                                           z * (2.75573137070700676789e-06 +
                                                z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
    const Lanes c =
        1.0 - (0.5 * z - z * z *
                             (4.16666666666666019037e-02 +
                              z * (-1.38888888888741095749e-03 +
                                   z * (2.48015872894767294178e-05 +
                                        z * (-2.75573143513906633035e-07 +
                                             z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))))));
    const Bits quadrant = (Bits)shifted;
    const Mask odd = (quadrant & 1) != 0;
    const Lanes a = odd ? s : c, b = odd ? c : s;
    const Bits sign_cosine = ((quadrant + 1) & 2) << 62, sign_sine = (quadrant & 2) << 62;
    return {(Lanes)((Bits)a ^ sign_cosine), (Lanes)((Bits)b ^ sign_sine)};
}

}  // namespace
