// Small bags put side by side, as many as a vector register has lanes, so that the recursion does them at once.
#pragma once

#include <cstdint>
#include <vector>

#include "buffer.h"
#include "kernels.h"

namespace kofn {

// A bag for the recursion, and the counts that are wanted of it.
struct Member {
    Member() = default;
    Member(int64_t bag, const double* p, const double* q, int64_t size, int64_t low, int64_t high)
        : bag(bag), p(p), q(q), size(size), low(low), high(high) {}

    int64_t bag;          // number that the caller knows it by
    const double *p, *q;  // its probabilities, tilted or not
    int64_t size, low, high;
};

// No bag larger than this goes to the recursion: the rows it keeps have to stay in the cache.
constexpr int64_t largest_member = 256;

class Groups {
public:
    explicit Groups(const Kernels& kernels) : kernels_(kernels) {}

    // No members, and room for some.
    void clear(int64_t room) {
        members_.clear();
        members_.reserve(static_cast<std::size_t>(room));
    }
    // The arguments of a Member, which is made in place: a copy right after the writes would wait for them.
    template <class... Arguments>
    void add(Arguments... arguments) {
        members_.emplace_back(arguments...);
    }

    // Calls visit(group, members, number, probs, weights) for each group, its distribution already computed: probs[k *
    // lanes + l] is P(S = group.low + k) in lane l, and `weights`, of the same shape, is scratch for a later `pull`.
    template <class Visit>
    void run(Visit visit);

    // sum_s weights_s P(y_i = 1, S = s) to out[l] for the bag in lane l, of the group that is being visited.
    void pull(const Group& group, const double* weights, double* const* out) const {
        kernels_.recursion_backward(group, weights, out);
    }

private:
    void arrange();
    Group assemble(const Member* members, int number);

    const Kernels& kernels_;
    std::vector<Member> members_, sorted_;
    std::vector<int64_t> places_;
    Buffer work_, weights_;
};

template <class Visit>
void Groups::run(Visit visit) {
    arrange();
    const auto total = static_cast<int64_t>(members_.size());
    for (int64_t at = 0; at < total; at += kernels_.lanes) {
        const int number = static_cast<int>(total - at < kernels_.lanes ? total - at : kernels_.lanes);
        const Group group = assemble(members_.data() + at, number);
        const double* probs = kernels_.recursion_forward(group);
        double* weights = weights_.reserve((group.high - group.low + 1) * kernels_.lanes);
        visit(group, members_.data() + at, number, probs, weights);
    }
}

}  // namespace kofn
