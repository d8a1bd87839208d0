// The distribution of a sum of two independent counts: the convolution of theirs, right in every tail.
//
// A fast Fourier transform convolves n numbers in n log n steps but is right only to a fraction of the largest of them.
// So it is done in windows: the log-probabilities of both counts are tilted by one t, which makes a wanted count the
// likeliest, the few counts on either side that are not negligible are cut out, and of their convolution only what is
// at least a thousandth of its largest is kept; the next window begins where that ends. Windows, and what is cut out
// for them, are some standard deviations wide: together they cover the counts two or three times over.
#pragma once

#include <cstdint>

#include "buffer.h"
#include "kernels.h"

namespace kofn {

// A window shows counts down to a thousandth of its likeliest, e^-taken_log: that loses three digits of sixteen.
constexpr double taken_log = 6.907755278982137;

// log P(S = k) for k = 0 .. size: a concave sequence (Newton's inequalities).
struct Logs {
    const double* at;
    int64_t size;

    double up(int64_t k) const;    // what the next count has more, or -inf
    double down(int64_t k) const;  // what count k has more than the one before, or +inf
};

// The convolution of two such sequences.
class AllCountsMerger {
public:
    explicit AllCountsMerger(const Kernels& kernels) : kernels_(kernels) {}

    // To out, a.size + b.size + 1 numbers. The tilt of each inner count to `tilts`, unless that is null.
    void merge(Logs a, Logs b, double* out, double* tilts);

private:
    struct Place {  // a count, how it splits best, and the tilt under which it is the likeliest
        int64_t count, of_a, of_b;
        double tilt, top;  // top: the largest of a_i b_j with i + j = count, its logarithm
    };
    struct Slice {  // what is not negligible of one sequence under a tilt, for the kernel `lean`
        int64_t first, number;
        double base, from, peak;
    };
    struct Product {  // of two slices, some of it
        const double* at;
        int64_t number;
        double log_scale;  // to be added to its logarithms
    };

    Place place(int64_t count) const;
    Place ahead(const Place& next, int64_t& stride) const;
    Slice slice(const Logs& logs, int64_t mode, double tilt) const;
    Product convolve(const Slice& a, const Slice& b, Mass mass, int64_t from, int64_t end);
    int64_t window(const Place& next, const Place& centre, double* out);
    double alone(const Place& next) const;
    const double* roots(int64_t length);

    const Kernels& kernels_;
    Logs a_{}, b_{};
    Buffer slices_, product_, roots_;
    int64_t room_ = 0;     // for each of the two slices
    int64_t longest_ = 0;  // of the transforms that there are roots for
};

}  // namespace kofn
