#include "all_counts_tree.h"

#include <algorithm>

namespace kofn {
namespace {

constexpr int64_t largest_leaf = 256;  // a level more of the tree costs as much as the recursion of twice the size

}  // namespace

bool never_underflows(const Kernels& kernels, const double* z, int64_t size) {
    return kernels.sum_abs(z, size) + static_cast<double>(size) * 0.6931471805599453 < 599.999;
}

// A bag may be sorted by its logits. Taken in strides, every part is like the whole, which keeps windows narrow.
void AllCountsTree::shuffle(const Bag& bag) {
    const int64_t strides = (bag.size + largest_leaf - 1) / largest_leaf;
    double* z = bag_.reserve(3 * bag.size);
    double *p = z + bag.size, *q = p + bag.size;
    int64_t to = 0;
    for (int64_t first = 0; first < strides; ++first)
        for (int64_t i = first; i < bag.size; i += strides, ++to) {
            z[to] = bag.z[i];
            p[to] = bag.p[i];
            q[to] = bag.q[i];
        }
    shuffled_ = {z, p, q, bag.size};
}

// Halves, down to what the recursion can do without a tilt.
void AllCountsTree::plan(int64_t first, int64_t size) {
    const int64_t start = room_, left = size / 2;
    if (size == 1 || (size <= leaf_ && never_underflows(kernels_, shuffled_.z + first, size))) {
        if (size > 1)
            groups_.add(static_cast<int64_t>(nodes_.size()), shuffled_.p + first, shuffled_.q + first, size, 0, size);
        room_ += size + 1;
        nodes_.push_back({start, room_, size, 0});
        return;
    }
    plan(first, left);
    const int64_t second = room_;
    plan(first + left, size - left);
    nodes_.push_back({start, second, left, size - left});
}

void AllCountsTree::leaves() {
    int64_t first = 0;
    for (const Node& node : nodes_) {
        if (node.right > 0) continue;
        if (node.left == 1) {
            logs_.data()[node.start] = kernels_.log_sigmoid(shuffled_.z + first, nullptr, 1, -1.0);
            logs_.data()[node.start + 1] = kernels_.log_sigmoid(shuffled_.z + first, nullptr, 1, 1.0);
        }
        first += node.left;
    }
    const int lanes = kernels_.lanes;
    groups_.run([&](const Group&, const Member* members, int number, const double* probs, double*) {
        for (int l = 0; l < number; ++l) {
            double* out = logs_.data() + nodes_[static_cast<std::size_t>(members[l].bag)].start;
            for (int64_t s = 0; s <= members[l].size; ++s) out[s] = probs[s * lanes + l];
            kernels_.log(out, members[l].size + 1);
        }
    });
}

void AllCountsTree::solve(const Bag& bag, double* out, double* tilts) {
    shuffle(bag);
    groups_.clear(bag.size / largest_leaf + 1);
    nodes_.clear();
    room_ = 0;
    leaf_ = std::min<int64_t>(largest_leaf, (bag.size + 1) / 2);  // the whole is never a leaf
    plan(0, bag.size);
    logs_.reserve(room_);
    leaves();
    for (const Node& node : nodes_) {
        if (node.right == 0) continue;
        const bool root = &node == &nodes_.back();
        const int64_t counts = node.left + node.right + 1;
        double* whole = root ? out : whole_.reserve(counts);
        const Logs left{logs_.data() + node.start, node.left}, right{logs_.data() + node.second, node.right};
        merger_.merge(left, right, whole, root ? tilts : nullptr);
        if (!root) std::copy_n(whole, counts, logs_.data() + node.start);
    }
}

}  // namespace kofn
