// Distributions through their characteristic function phi(u) = prod_i (q_i + p_i e^{iu}). Only for the kernel units.
//
// With M points, (1/M) sum_m phi(u_m) e^{-i u_m s} is P(S = s) up to counts M away. phi(-u) is the conjugate of phi(u),
// so each frequency m > 0 counts twice and only real parts are kept.
#pragma once

#include "kernel_lanes.h"
#include "kernels.h"

namespace {

using kofn::Sides;
using kofn::Spectrum;

// Four instances make a factor c_0 + .. + c_4 e^{4iu}. Times e^{-2iu} it is
//
//     c_2 + (c_1 + c_3) cos u + (c_0 + c_4) cos 2u  +  i [(c_3 - c_1) sin u + (c_4 - c_0) sin 2u],
//
// eight operations a frequency with the complex product, where one instance at a time would take six each.
struct Factors {
    static constexpr int64_t capacity = 256;
    double even0[capacity], even1[capacity], even2[capacity], odd1[capacity], odd2[capacity];
};

// Instances i, i + lanes, i + 2 lanes and i + 3 lanes make a factor.
void make_factors(const double* p, const double* q, int64_t n, Factors& out) {
    for (int64_t i = 0, j = 0; i < n; i += 4 * lanes, j += lanes) {
        Lanes a[4], b[4];
        for (int k = 0; k < 4; ++k) {
            const int64_t start = i + k * lanes, left = start < n ? n - start : 0;
            a[k] = load_some(p + start, left, 0.0);
            b[k] = load_some(q + start, left, 1.0);
        }
        const Lanes l0 = b[0] * b[1], l1 = b[0] * a[1] + a[0] * b[1], l2 = a[0] * a[1];
        const Lanes r0 = b[2] * b[3], r1 = b[2] * a[3] + a[2] * b[3], r2 = a[2] * a[3];
        const Lanes c0 = l0 * r0, c1 = l0 * r1 + l1 * r0, c3 = l1 * r2 + l2 * r1, c4 = l2 * r2;
        store(out.even0 + j, l0 * r2 + l1 * r1 + l2 * r0);
        store(out.even1 + j, c1 + c3);
        store(out.even2 + j, c0 + c4);
        store(out.odd1 + j, c3 - c1);
        store(out.odd2 + j, c4 - c0);
    }
}

// Multiply the factors onto `width` vectors of frequencies: enough of them to hide the latency of the products.
template <int width>
void multiply(const Factors& factors, int64_t number, int64_t m, Spectrum& spectrum) {
    Lanes cos1[width], cos2[width], sin1[width], sin2[width], re[width], im[width];
    for (int g = 0; g < width; ++g) {
        const int64_t at = m + g * lanes;
        cos1[g] = load(spectrum.cosine + at);
        sin1[g] = load(spectrum.sine + at);
        cos2[g] = 2.0 * cos1[g] * cos1[g] - 1.0;
        sin2[g] = 2.0 * sin1[g] * cos1[g];
        re[g] = load(spectrum.re + at);
        im[g] = load(spectrum.im + at);
    }
    for (int64_t j = 0; j < number; ++j) {
        const double even0 = factors.even0[j], even1 = factors.even1[j], even2 = factors.even2[j];
        const double odd1 = factors.odd1[j], odd2 = factors.odd2[j];
        for (int g = 0; g < width; ++g) {
            const Lanes x = even0 + even1 * cos1[g] + even2 * cos2[g];
            const Lanes y = odd1 * sin1[g] + odd2 * sin2[g];
            const Lanes next = re[g] * x - im[g] * y;
            im[g] = re[g] * y + im[g] * x;
            re[g] = next;
        }
    }
    for (int g = 0; g < width; ++g) {
        store(spectrum.re + m + g * lanes, re[g]);
        store(spectrum.im + m + g * lanes, im[g]);
    }
}

void frequencies(Spectrum& spectrum) {
    for (int64_t m = 0; m < spectrum.used; m += lanes) {
        const Turn half = turn(counting() + static_cast<double>(m), 2.0 * static_cast<double>(spectrum.points));
        const Lanes c2 = half.cosine * half.cosine, s2 = half.sine * half.sine;
        store(spectrum.cosine + m, c2 - s2);
        store(spectrum.sine + m, 2.0 * half.sine * half.cosine);
        store(spectrum.cosine_half2 + m, c2);
        store(spectrum.sine_half2 + m, s2);
        store(spectrum.re + m, splat(1.0));
        store(spectrum.im + m, Lanes{});
    }
    spectrum.centre = 0;
}

void characteristic(const double* p, const double* q, int64_t n, Spectrum& spectrum) {
    constexpr int64_t block = 4 * Factors::capacity;
    const int64_t vectors = (spectrum.used + lanes - 1) / lanes;
    for (int64_t start = 0; start < n; start += block) {
        const int64_t left = n - start < block ? n - start : block;
        const int64_t number = (left + 4 * lanes - 1) / (4 * lanes) * lanes;
        Factors factors;
        make_factors(p + start, q + start, left, factors);
        int64_t g = 0;
        for (; g + 3 <= vectors; g += 3) multiply<3>(factors, number, g * lanes, spectrum);
        if (vectors - g == 2) multiply<2>(factors, number, g * lanes, spectrum);
        if (vectors - g == 1) multiply<1>(factors, number, g * lanes, spectrum);
        spectrum.centre += 2 * number;
    }
}

// The same of rows that stand for c alike people each, all of the bag: e^{sum c log w}, w = q + p e^{iu}, as accurate
// for a million people as for one. log |w| = log(1 - 4 p q sin^2(u/2)) / 2. Angles are those of the less likely label,
// m = min(p, q), less their first order m u: f = angle(1 + m (e^{iu} - 1)) - m u, and with -f for p > q their sum is
// that of phi e^{-iu mean}. What is left of the mean beside the whole number `centre` comes last. Where u is small, and
// many people's f may cancel, with T = tan(u/2), d = 1 - 2 m and y = d^2,
//
//     f = d atan T - atan(d T) = -d (1 - y) T^3 (1/3 - (1 + y) T^2/5 + (1 + y + y^2) T^4/7 - ..).
void characteristic_of_copies(const double* p, const double* q, const double* c, int64_t n, Spectrum& spectrum) {
    constexpr int terms = 9;
    constexpr double two_pi = 6.283185307179586;
    const double points = static_cast<double>(spectrum.points);
    const bool near = two_pi * static_cast<double>(spectrum.used) < 0.25 * points;
    Exact<double> rest;  // of the mean
    double whole = 0.0;
    for (int64_t i = 0; i < n; ++i) {
        const double part = p[i] > q[i] ? -q[i] : p[i], product = c[i] * part;
        whole += p[i] > q[i] ? c[i] : 0.0;
        rest.add(product);
        rest.low += __builtin_fma(c[i], part, -product);
    }
    const double nearest = (rest.high + rounder) - rounder, fraction = (rest.high - nearest) + rest.low;
    spectrum.centre = static_cast<int64_t>(whole + nearest);
    for (int64_t k = 0; k < spectrum.used; k += lanes) {
        const Lanes u = (counting() + static_cast<double>(k)) * (two_pi / points);
        const Lanes cosine2 = load(spectrum.cosine_half2 + k), sine2 = load(spectrum.sine_half2 + k),
                    sine = load(spectrum.sine + k);
        const Lanes tangent = 0.5 * sine / cosine2, square = tangent * tangent;
        Lanes size{}, angle = fraction * u;
        for (int64_t i = 0; i < n; ++i) {
            const bool one = p[i] > q[i];
            const double m = one ? q[i] : p[i], turned = one ? -c[i] : c[i];
            size += (0.5 * c[i]) * log1p((-4.0 * p[i] * q[i]) * sine2);
            if (near) {
                const double d = 1.0 - 2.0 * m, y = d * d;
                double power[terms], sum = 0.0;
                for (int j = 0; j < terms; ++j) power[j] = (sum = sum * y + 1.0) / (2 * j + 3);
                Lanes series = splat(power[terms - 1]);
                for (int j = terms - 2; j >= 0; --j) series = power[j] - square * series;
                angle -= (turned * d * 4.0 * p[i] * q[i]) * (tangent * square * series);
            } else {
                angle += turned * (angle_of(m * sine, 1.0 - 2.0 * m * sine2) - m * u);
            }
        }
        const Lanes modulus = exp_nonpositive(min(size, Lanes{}));
        const Turn direction = turn(angle, two_pi);
        store(spectrum.re + k, modulus * direction.cosine);
        store(spectrum.im + k, modulus * direction.sine);
    }
}

void complete(Spectrum& spectrum) {
    // phi(0) is one. What rounding made of it, n times the same error when all logits are equal, is in all of phi.
    const double scale = 1.0 / (static_cast<double>(spectrum.points) * spectrum.re[0]);
    for (int64_t m = 0; m < (spectrum.used + lanes - 1) / lanes * lanes; ++m) {
        const double weight = m >= spectrum.used ? 0.0 : m == 0 ? scale : 2.0 * scale;
        spectrum.re[m] *= weight;
        spectrum.im[m] *= weight;
    }
}

// For every count first + k in turn, calls visit(k, m, wave) for each vector of frequencies m, m + 1, .. with wave =
// e^{-i u (count - centre)}, and then finish(k). From one count to the next the waves turn by u; every 32 counts they
// are made afresh, so that errors stay put. Counts are the outer loop because each wave waits for the one before it.
template <class Visit, class Finish>
inline void waves(const Spectrum& spectrum, int64_t first, int64_t number, Visit visit, Finish finish) {
    const double points = static_cast<double>(spectrum.points);
    Turn wave[Spectrum::capacity / lanes];
    for (int64_t k = 0; k < number; ++k) {
        const bool afresh = k % 32 == 0;
        const double count = static_cast<double>(first + k - spectrum.centre);
        for (int64_t g = 0, m = 0; m < spectrum.used; ++g, m += lanes) {
            if (afresh) wave[g] = turn(-count * (counting() + static_cast<double>(m)), points);
            const Turn now = wave[g];
            const Lanes c = load(spectrum.cosine + m), s = load(spectrum.sine + m);
            visit(k, m, now);
            wave[g] = {now.cosine * c + now.sine * s, now.sine * c - now.cosine * s};
        }
        finish(k);
    }
}

void inverse(const Spectrum& spectrum, int64_t first, int64_t number, double* out) {
    Lanes total{};
    waves(
        spectrum, first, number,
        [&](int64_t, int64_t m, const Turn& wave) {
            total += load(spectrum.re + m) * wave.cosine - load(spectrum.im + m) * wave.sine;
        },
        [&](int64_t k) {
            out[k] = sum(total);
            total = Lanes{};
        });
}

// Removing instance i divides phi by w = q + p e^{iu}; setting its label to one multiplies by p e^{iu}. Hence
//
//     sum_s weights_s P(y_i = 1, S = s) = Re sum_u f(u) r_i(u),    f(u) = phi(u) sum_s weights_s e^{-ius} / M,
//     r = p e^{iu} / w = (p q e^{iu} + p^2) / |w|^2,
//
// so each instance needs two real sums over the frequencies, of Re(f e^{iu}) / |w|^2 and Re(f) / |w|^2.
Sides make_sides(const Spectrum& spectrum, int64_t first, int64_t number, const double* weights) {
    alignas(64) double re[Spectrum::capacity] = {}, im[Spectrum::capacity] = {};
    waves(
        spectrum, first, number,
        [&](int64_t k, int64_t m, const Turn& wave) {
            store(re + m, load(re + m) + weights[k] * wave.cosine);
            store(im + m, load(im + m) + weights[k] * wave.sine);
        },
        [](int64_t) {});
    Sides sides = {};
    for (int64_t m = 0; m < spectrum.used; ++m) {
        const double a = spectrum.re[m] * re[m] - spectrum.im[m] * im[m];
        const double b = spectrum.re[m] * im[m] + spectrum.im[m] * re[m];
        sides.first[m] = a * spectrum.cosine[m] - b * spectrum.sine[m];
        sides.second[m] = a;
    }
    return sides;
}

inline void add_share(Lanes p, Lanes pq, Lanes first, Lanes second, int64_t left, double* out) {
    store_some(out, left, load_some(out, left, 0.0) + (pq * first + p * p * second));
}

// |w|^2 = (q - p)^2 + 4 p q cos^2(u / 2), a sum of squares: no cancellation. One division serves four frequencies.
void pull_by_division(const double* p, const double* q, int64_t n, const Spectrum& spectrum, const Sides& sides,
                      double* out) {
    alignas(64) double c2[Spectrum::capacity];
    for (int64_t m = 0; m < Spectrum::capacity; ++m) c2[m] = m < spectrum.used ? spectrum.cosine_half2[m] : 1.0;
    for (int64_t i = 0; i < n; i += lanes) {
        const Lanes a = load_some(p + i, n - i, 0.0), b = load_some(q + i, n - i, 1.0);
        const Lanes pq = a * b, rest = (b - a) * (b - a), four = 4.0 * pq;
        Lanes first{}, second{};
        for (int64_t m = 0; m < spectrum.used; m += 4) {
            const Lanes w0 = rest + four * c2[m], w1 = rest + four * c2[m + 1];
            const Lanes w2 = rest + four * c2[m + 2], w3 = rest + four * c2[m + 3];
            const Lanes left = w0 * w1, right = w2 * w3, one = 1.0 / (left * right);
            const Lanes by_left = one * right, by_right = one * left;
            const Lanes d0 = by_left * w1, d1 = by_left * w0, d2 = by_right * w3, d3 = by_right * w2;
            const double *a1 = sides.first + m, *a2 = sides.second + m;
            first += (d0 * a1[0] + d1 * a1[1]) + (d2 * a1[2] + d3 * a1[3]);
            second += (d0 * a2[0] + d1 * a2[1]) + (d2 * a2[2] + d3 * a2[3]);
        }
        add_share(a, pq, first, second, n - i, out + i);
    }
}

// |w|^2 = 1 - g h with g = 4 p q and h = sin^2(u / 2). About the middle c of the values that g takes,
//
//     1 / |w|^2 = 1 / (1 - c h)  sum_k (g - c)^k (h / (1 - c h))^k,
//
// and where that converges fast the two sums over frequencies are two short polynomials in g - c, the same for all
// instances.
void pull_by_series(const double* p, const double* q, int64_t n, const Spectrum& spectrum, const Sides& sides,
                    double middle, int terms, double* out) {
    double first[Spectrum::capacity] = {}, second[Spectrum::capacity] = {};
    for (int64_t m = 0; m < spectrum.used; ++m) {
        const double scale = 1.0 / (1.0 - middle * spectrum.sine_half2[m]), ratio = spectrum.sine_half2[m] * scale;
        double power = scale;
        for (int k = 0; k < terms; ++k, power *= ratio) {
            first[k] += sides.first[m] * power;
            second[k] += sides.second[m] * power;
        }
    }
    constexpr int width = 4;  // independent sums, to hide the latency of Horner's rule
    for (int64_t i = 0; i < n; i += width * lanes) {
        Lanes a[width], pq[width], g[width], x[width], y[width];
        for (int v = 0; v < width; ++v) {
            const int64_t at = i + v * lanes, left = at < n ? n - at : 0;
            a[v] = load_some(p + at, left, 0.0);
            pq[v] = a[v] * load_some(q + at, left, 1.0);
            g[v] = 4.0 * pq[v] - middle;
            x[v] = splat(first[terms - 1]);
            y[v] = splat(second[terms - 1]);
        }
        for (int k = terms - 2; k >= 0; --k)
            for (int v = 0; v < width; ++v) {
                x[v] = x[v] * g[v] + first[k];
                y[v] = y[v] * g[v] + second[k];
            }
        for (int v = 0; v < width; ++v) {
            const int64_t at = i + v * lanes;
            if (at < n) add_share(a[v], pq[v], x[v], y[v], n - at, out + at);
        }
    }
}

void pull(const double* p, const double* q, int64_t n, double widest, const Spectrum& spectrum, const Sides& sides,
          double* out) {
    // Terms until the ratio's power is below 2^-57; a frequency costs about two and a half terms of the series.
    const double middle = 2.0 * widest, reach = middle * spectrum.sine_half2[spectrum.used - 1];
    const double ratio = reach / (1.0 - reach);
    const int64_t most = spectrum.used * 5 / 2 < Spectrum::capacity ? spectrum.used * 5 / 2 : Spectrum::capacity;
    int terms = 1;
    for (double power = ratio; power > 0x1p-57 && terms < most; power *= ratio) ++terms;
    if (terms < most)
        pull_by_series(p, q, n, spectrum, sides, middle, terms, out);
    else
        pull_by_division(p, q, n, spectrum, sides, out);
}

}  // namespace
