// The loops that are worth vectorising, as a table of functions: one table for each instruction set.
//
// This header is the border between the kernel units, which are compiled for one instruction set and include no
// C++ header, and the rest, which is compiled for every machine. All arrays are float64; none needs alignment.
#pragma once

#include <stdint.h>

namespace kofn {

// Sums over the instances of one bag under some tilt.
struct Moments {
    double mean;      // sum p, here and below times the copies of each row
    double variance;  // sum p q
    double widest;    // max p q
    double above;     // number of instances with z + t > 0
    double cost;      // sum |z| over the instances whose z + t and z differ in sign
    double cost_low;  // what rounding took from it
    double logs;      // sum log((1 + e^{-|z + t|}) / (1 + e^{-|z|}))
};

struct Range {
    double low, high;
};

// Where the mass of a slice of counts lies, from its first count on.
struct Mass {
    double mean, variance;
};

// Numbers in a table of roots of unity for transforms of up to `longest` (kernel_convolution.h).
static inline int64_t fft_roots(int64_t longest) { return 6 * longest; }

// Several bags side by side, one in each lane, that are computed by recursion (kernel_recursion.h).
struct Group {
    static constexpr int max_lanes = 8;
    const double* p[max_lanes];  // probabilities of each bag; lanes without a bag have size 0
    const double* q[max_lanes];  // their complements
    int64_t size[max_lanes];
    int64_t longest;    // largest size
    int64_t low, high;  // the counts that are wanted, of all lanes together: 0 <= low <= high <= longest
    double* work;       // recursion_work(lanes, longest, high) numbers, 64-byte aligned
};

// A distribution through its characteristic function phi (kernel_fourier.h). More than 57 frequencies never carry
// weight.
struct Spectrum {
    static constexpr int capacity = 64;
    int64_t points;  // M: frequency m is the angle u = 2 pi m / M
    int64_t used;    // frequencies 0 .. used - 1
    int64_t centre;  // phi is stored times e^{-i u centre}: counts are asked for relative to it
    alignas(64) double cosine[capacity], sine[capacity];              // of u
    alignas(64) double cosine_half2[capacity], sine_half2[capacity];  // squares, of u / 2
    alignas(64) double re[capacity], im[capacity];  // phi(u) e^{-i u centre}, with the weights of the inverse
};

// What a pull takes from the frequencies (kernel_fourier.h).
struct Sides {
    alignas(64) double first[Spectrum::capacity], second[Spectrum::capacity];
};

// Which table of class counts (kernel_class_table.h). Class 0 has no digit.
struct ClassTable {
    int64_t size, classes, states;
    int64_t stretch;        // one table is kept for so many instances
    const int64_t* count;   // k_c of each class
    const int64_t* stride;  // what one more of class c adds to the number of a state
};

static inline int64_t class_stretches(int64_t size, int64_t stretch) {
    return size == 0 ? 1 : (size + stretch - 1) / stretch;
}
static inline int64_t class_table_work(int64_t size, int64_t states, int64_t stretch) {
    return (class_stretches(size, stretch) + stretch + 3) * states;
}

// Frequencies u of class counts (kernel_class_fourier.h): e^{i u_c} of classes 1 .. in rows, and the weights of the
// inverse, Re sum g phi. Their number is a multiple of twice the lanes; the last may have weight 0.
struct ClassFrequencies {
    static constexpr int64_t most_classes = 5;
    int64_t number;
    const double *cosine, *sine;  // (classes - 1) * number
    const double *re, *im;        // g
};

static inline int64_t class_block(int64_t size) { return size <= 1024 ? size : 512; }  // of instances, done at a time
static inline int64_t class_blocks(int64_t size) { return size <= 1024 ? 1 : (size + 511) / 512; }
static inline int64_t class_fourier_work(int lanes, int64_t size, int64_t classes, int64_t frequencies) {
    return lanes * class_block(size) * (4 + classes) + 2 * frequencies * (class_blocks(size) + 1);
}

// Beyond it, float64 does not hold the differences of logits beside their sums.
constexpr double largest_logit = 1e5;

struct Kernels {
    int lanes;

    // kernel_pointwise.h
    bool (*widen)(const float* x, int64_t n, double* out);  // to float64; returns whether all are ordinary
    bool (*ordinary)(const double* x, int64_t n);           // no NaN, none above largest_logit in size
    void (*sigmoid)(const double* z, int64_t n, double t, double* p, double* q);  // of z + t
    void (*log)(double* x, int64_t n);  // in place, of positive normal numbers
    void (*exp)(double* x, int64_t n);  // in place, of numbers that are not positive
    // c: copies of each row, or null: one.
    double (*log_sigmoid)(const double* z, const double* c, int64_t n, double sign);  // sum c log sigmoid(sign z)
    double (*sum_abs)(const double* z, int64_t n);
    Range (*range)(const double* z, int64_t n);
    Moments (*moments)(const double* p, const double* q, const double* c, int64_t n);
    Moments (*tilt)(const double* z, const double* p0, const double* q0, int64_t n, double t, double* p, double* q);
    Moments (*tilt_copies)(const double* z, const double* p0, const double* q0, const double* c, int64_t n, double t,
                           double* p, double* q);
    // Posteriors may be a few 1e-16 outside [0, 1] by rounding; each of these puts them back.
    void (*clamp)(const double* posterior, int64_t n, double* out);
    void (*gradient)(const double* posterior, const double* prior, int64_t n, double weight,
                     double* out);  // of their difference
    void (*gradient_narrow)(const double* posterior, const double* prior, int64_t n, double weight, float* out);

    // kernel_recursion.h: returns the probabilities of counts low .. high, `lanes` numbers for each;
    const double* (*recursion_forward)(const Group& group);
    // then, for weights in the same layout, sum_s weights_s P(y_i = 1, S = s) of each lane's instances.
    void (*recursion_backward)(const Group& group, const double* weights, double* const* out);

    // kernel_fourier.h: the frequencies of a spectrum with points and used, for no instances yet;
    void (*frequencies)(Spectrum& spectrum);
    // some instances more;
    void (*characteristic)(const double* p, const double* q, int64_t n, Spectrum& spectrum);
    // all rows of a bag with copies;
    void (*characteristic_of_copies)(const double* p, const double* q, const double* c, int64_t n, Spectrum& spectrum);
    // after the last of them, the weights of the inverse;
    void (*complete)(Spectrum& spectrum);
    // P(S = first + k), k < number;
    void (*inverse)(const Spectrum& spectrum, int64_t first, int64_t number, double* out);
    // out_i += sum_k weights_k P(y_i = 1, S = first + k), with widest = max p q over the bag, in two steps.
    Sides (*make_sides)(const Spectrum& spectrum, int64_t first, int64_t number, const double* weights);
    void (*pull)(const double* p, const double* q, int64_t n, double widest, const Spectrum& spectrum,
                 const Sides& sides, double* out);

    // kernel_convolution.h: a slice of log-probabilities under a tilt, the way back, and products of slices.
    Mass (*lean)(const double* logs, int64_t n, double base, double tilt, double from, double peak, double* out);
    void (*straighten)(double* x, int64_t n, double base, double tilt, double from);
    void (*convolve)(const double* a, int64_t na, const double* b, int64_t nb, double* out);
    void (*make_roots)(int64_t longest, double* table);
    void (*square)(double* a, double* b, int64_t n, const double* table);

    // kernel_random_effect.h
    void (*effect_nodes)(const double* zeta, double sigma, int64_t nodes, double* a, double* b, double* up,
                         double* down);
    void (*effect_terms)(const double* p, const double* q, const double* c, int64_t n, const double* zeta, double slope,
                         const double* up, const double* down, int64_t nodes, int64_t stretch, double* out);
    double (*effect_weights)(double* terms, const double* weights, int64_t nodes);
    double (*effect_means)(const double* p, const double* q, const double* c, int64_t n, const double* a,
                           const double* b, const double* w, const double* v, int64_t shifts, double* out);

    // kernel_class_table.h: P(K = k), and unless joint is null P(y_i = c, K = k), size * classes; p is of that shape;
    void (*class_table_one)(const ClassTable& table, const double* p, double* total, double* joint, double* work);
    // of one bag in each lane, with `lanes` numbers for each above. All are aligned as vectors.
    void (*class_table_many)(const ClassTable& table, const double* p, double* total, double* joint, double* work);
    // kernel_class_fourier.h: the same for 2 to most_classes classes.
    double (*class_fourier)(const double* p, int64_t n, int64_t classes, const ClassFrequencies& frequencies,
                            double* joint, double* work);
};

// Numbers in Group::work: p and q padded to fours, a row of partial distributions after every four instances, one row
// back. Static, because the kernel units may share no function (see kernels.cpp).
static inline int64_t recursion_quads(int64_t longest) { return (longest + 3) / 4; }
static inline int64_t recursion_stride(int64_t high) { return high + 11; }
static inline int64_t recursion_work(int lanes, int64_t longest, int64_t high) {
    const int64_t quads = recursion_quads(longest);
    return lanes * (8 * quads + (quads + 2) * recursion_stride(high));
}

extern const Kernels kernels_baseline;
#ifdef KOFN_X86
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

}  // namespace kofn
