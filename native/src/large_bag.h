// One count or one interval of counts of a bag of hundreds of thousands of instances and more, on all threads.
//
// Everything that is asked of a bag is a sum, a product or a list over its instances: the moments under a tilt, the
// characteristic function, the posteriors. So the bag is cut into chunks, threads take them as they are free, and what
// they found is put together in the order of the chunks. Chunks are cut at the same places whatever the number of
// threads, and so is every digit of the answer. No pass keeps anything of an instance: the next computes its
// probabilities again from its logit, which takes less time than memory does, and the bag needs no memory beside logits
// and results.
//
// The same holds for a bag whose instances lie on several processes. Each does its own chunks; what they found goes to
// all of them and is put together in the order of the processes, so that all take the same steps and have the same
// answer.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "bags.h"
#include "event.h"
#include "kernels.h"
#include "kofn.h"
#include "tilt.h"

namespace kofn {

// The processes that a bag lies on. Without `gather` it lies on this one.
struct Team {
    int64_t processes = 1;
    kofn_gather gather = nullptr;
};

class LargeBag {
public:
    LargeBag(const Kernels& kernels, const EventCall& call, int64_t j, int threads, Team team = {});
    void solve();

    struct Survey {
        Moments moments;  // without a tilt
        Range range;
        int64_t instances, size, ones;  // all, undecided, and those of +inf
        int64_t broken;                 // parts with a NaN
    };

private:
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
    template <class Result, class Work>
    Result combine(Result none, Work work);
    void survey();
    Tilted at(double tilt);
    std::vector<std::pair<double, double>> rows();
    double solve_open(Wanted wanted);
    double all_alike(double sign);
    template <class Posterior>
    void write(Posterior posterior);

    const Kernels& kernels_;
    const EventCall& call_;
    const int64_t j_;
    const int threads_;
    const Team team_;
    std::vector<Scratch> scratch_;
    Survey all_{};
};

}  // namespace kofn
