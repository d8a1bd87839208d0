// One count or one interval of counts of a bag of hundreds of thousands of instances and more, on all threads.
//
// Everything that is asked of a bag is a sum, a product or a list over its instances: the moments under a tilt, the
// characteristic function, the posteriors. So the bag is cut into chunks, threads take them as they are free, and what they
// found is put together in the order of the chunks. Chunks are cut at the same places whatever the number of threads, and
// so is every digit of the answer. No pass keeps anything of an instance: the next computes its probabilities again from
// its logit, which takes less time than memory does, and the bag needs no memory beside logits and results.
#pragma once

#include <cstdint>
#include <vector>

#include "bags.h"
#include "interval.h"
#include "kernels.h"
#include "tilt.h"

namespace kofn {

class LargeBag final : public Tiltable {
public:
    LargeBag(const Kernels& kernels, const IntervalCall& call, int64_t j, int threads);
    void solve();

    int64_t size() const override { return size_; }
    Range range() override { return range_; }
    Tilted at(double tilt) override;
    std::vector<double> logits() override;

private:
    struct Survey {
        Moments moments;  // without a tilt
        Range range;
        int64_t size, ones;
        bool broken;
    };
    struct Scratch {  // of one thread
        Undecided undecided;
        Buffer tilted, posterior;

        Bag bag(const Kernels& kernels);
        Bag tilted_bag(const Kernels& kernels, double tilt);
    };

    int64_t chunks() const;
    Input chunk(int64_t c) const;
    template <class Result, class Work>
    std::vector<Result> map(Work work);
    void survey();
    double solve_open(Wanted wanted);
    double all_alike(double sign);
    template <class Posterior>
    void write(Posterior posterior);

    const Kernels& kernels_;
    const IntervalCall& call_;
    const int64_t j_;
    const int threads_;
    std::vector<Scratch> scratch_;
    Moments plain_{};
    Range range_{};
    int64_t size_ = 0, ones_ = 0;  // undecided instances, and those of +inf
    bool broken_ = false;
};

}  // namespace kofn
