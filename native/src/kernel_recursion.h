// Small bags by recursion, one bag in each lane. Only for the kernel units.
//
// The distribution of the first i instances follows from that of the first i - 1; every term is positive, so every
// number is right to a few units in its last place as long as nothing underflows. Four instances are taken at a time:
// their own distribution, a polynomial c_0 + .. + c_4 X^4, is multiplied onto the row so far,
//
//     a'(k) = sum_c c_c a(k - c),
//
// which is five multiplications for four instances instead of eight, a quarter of the rows to keep, and backward
//
//     b(k) = sum_c c_c b'(k + c),        x_c = sum_k a(k) b'(k + c), c = 1 .. 4,
//
// where b'(k) is the weight that k positives so far end up with, and x_c the weight of c positives among the four apart
// from their own probability. An instance's share is then p_i times the distribution of the other three, summed with x.
//
// After j fours only counts from low - 4 (fours left) to min(4 j, high) can matter. Rows have index 4 for count 0, with
// zeros below it, and six zeros above their last count, so that loops need no ends and may run two counts at a time.
#pragma once

#include "kernel_lanes.h"
#include "kernels.h"

namespace {

using kofn::Group;

struct Rows {
    int64_t quads, stride, low, high;
    Lanes *p, *q, *forward, *back;

    explicit Rows(const Group& group)
        : quads(kofn::recursion_quads(group.longest)),
          stride(kofn::recursion_stride(group.high)),
          low(group.low),
          high(group.high),
          p(reinterpret_cast<Lanes*>(group.work)),
          q(p + 4 * quads),
          forward(q + 4 * quads),
          back(forward + (quads + 1) * stride) {}

    Lanes* after(int64_t j) const { return forward + j * stride + 4; }  // the row after j fours, from count 0
    int64_t first(int64_t j) const {
        const int64_t k = low - 4 * (quads - j);
        return k > 0 ? k : 0;
    }
    int64_t last(int64_t j) const { return 4 * j < high ? 4 * j : high; }
};

// The distributions of the pairs among four instances, and of all four.
struct Quad {
    Lanes a0, a1, a2, b0, b1, b2;
    Lanes c0, c1, c2, c3, c4;

    Quad(const Lanes* p, const Lanes* q)
        : a0(q[0] * q[1]),
          a1(q[0] * p[1] + p[0] * q[1]),
          a2(p[0] * p[1]),
          b0(q[2] * q[3]),
          b1(q[2] * p[3] + p[2] * q[3]),
          b2(p[2] * p[3]),
          c0(a0 * b0),
          c1(a0 * b1 + a1 * b0),
          c2(a0 * b2 + a1 * b1 + a2 * b0),
          c3(a1 * b2 + a2 * b1),
          c4(a2 * b2) {}
};

// Side by side: entry i of each lane's array, and a filler beyond its end.
void interleave(const double* const* from, const int64_t* size, int64_t shortest, int64_t padded, double fill,
                Lanes* to) {
    for (int64_t i = 0; i < shortest; ++i) {
        Lanes v;
        for (int k = 0; k < lanes; ++k) v[k] = from[k][i];
        to[i] = v;
    }
    for (int64_t i = shortest; i < padded; ++i) {
        Lanes v;
        for (int k = 0; k < lanes; ++k) v[k] = i < size[k] ? from[k][i] : fill;
        to[i] = v;
    }
}

int64_t shortest_size(const Group& group) {
    int64_t shortest = group.longest;
    for (int k = 0; k < lanes; ++k) shortest = group.size[k] < shortest ? group.size[k] : shortest;
    return shortest;
}

const double* recursion_forward(const Group& group) {
    const Rows rows(group);
    const int64_t shortest = shortest_size(group);
    interleave(group.p, group.size, shortest, 4 * rows.quads, 0.0, rows.p);
    interleave(group.q, group.size, shortest, 4 * rows.quads, 1.0, rows.q);
    Lanes* start = rows.after(0);
    for (int k = -4; k <= 6; ++k) start[k] = splat(k == 0 ? 1.0 : 0.0);
    for (int64_t j = 0; j < rows.quads; ++j) {
        const Quad four(rows.p + 4 * j, rows.q + 4 * j);
        const Lanes* from = rows.after(j);
        Lanes* to = rows.after(j + 1);
        const int64_t first = rows.first(j + 1), last = rows.last(j + 1);
        for (int k = -4; k < 0; ++k) to[k] = Lanes{};
        for (int64_t k = first; k <= last; k += 2) {
            const Lanes f0 = from[k], f1 = from[k - 1], f2 = from[k - 2], f3 = from[k - 3];
            const Lanes even = four.c0 * f0 + four.c1 * f1 + four.c2 * f2 + four.c3 * f3 + four.c4 * from[k - 4];
            const Lanes odd = four.c0 * from[k + 1] + four.c1 * f0 + four.c2 * f1 + four.c3 * f2 + four.c4 * f3;
            to[k] = even;
            to[k + 1] = odd;
        }
        for (int k = 1; k <= 6; ++k) to[last + k] = Lanes{};
    }
    return reinterpret_cast<const double*>(rows.after(rows.quads) + rows.low);
}

void recursion_backward(const Group& group, const double* weights, double* const* out) {
    const Rows rows(group);
    Lanes* back = rows.back + 4;
    for (int64_t k = 0; k < rows.low; ++k) back[k] = Lanes{};
    for (int64_t k = rows.low; k <= rows.high; ++k) back[k] = load(weights + (k - rows.low) * lanes);
    for (int k = 1; k <= 6; ++k) back[rows.high + k] = Lanes{};
    const int64_t shortest = shortest_size(group);
    for (int64_t j = rows.quads - 1; j >= 0; --j) {
        const Lanes *p = rows.p + 4 * j, *q = rows.q + 4 * j;
        const Quad four(p, q);
        const Lanes* row = rows.after(j);
        const int64_t last = rows.last(j);
        Lanes x1{}, x2{}, x3{}, x4{};
        for (int64_t k = rows.first(j); k <= last; k += 2) {
            const Lanes b1 = back[k + 1], b2 = back[k + 2], b3 = back[k + 3], b4 = back[k + 4], b5 = back[k + 5];
            const Lanes even = row[k], odd = row[k + 1];
            x1 += even * b1 + odd * b2;
            x2 += even * b2 + odd * b3;
            x3 += even * b3 + odd * b4;
            x4 += even * b4 + odd * b5;
            back[k] = four.c0 * back[k] + four.c1 * b1 + four.c2 * b2 + four.c3 * b3 + four.c4 * b4;
            back[k + 1] = four.c0 * b1 + four.c1 * b2 + four.c2 * b3 + four.c3 * b4 + four.c4 * b5;
        }
        // The partner pair taken into account: what is left of x for none or one positive of one's own pair's other.
        const Lanes y0 = four.b0 * x1 + four.b1 * x2 + four.b2 * x3, y1 = four.b0 * x2 + four.b1 * x3 + four.b2 * x4;
        const Lanes z0 = four.a0 * x1 + four.a1 * x2 + four.a2 * x3, z1 = four.a0 * x2 + four.a1 * x3 + four.a2 * x4;
        const Lanes share[4] = {p[0] * (q[1] * y0 + p[1] * y1), p[1] * (q[0] * y0 + p[0] * y1),
                                p[2] * (q[3] * z0 + p[3] * z1), p[3] * (q[2] * z0 + p[2] * z1)};
        if (4 * j + 4 <= shortest) {
            for (int k = 0; k < lanes; ++k)
                for (int i = 0; i < 4; ++i) out[k][4 * j + i] = share[i][k];
        } else {
            for (int k = 0; k < lanes; ++k)
                for (int i = 0; i < 4 && 4 * j + i < group.size[k]; ++i) out[k][4 * j + i] = share[i][k];
        }
    }
}

}  // namespace
