// Runs of bags, shared among threads that live as long as the call.
//
// No pool is kept: threads of a pool do not survive fork(), which data loaders use, and starting a thread costs some 20 us
// against the 2 ms of work that are asked for before any is started.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "bags.h"

namespace kofn {

constexpr double worth_a_thread = 2e6;       // nanoseconds
constexpr int64_t instances_in_run = 16384;  // scratch for a run stays in the cache

// Cut the bags into runs [cuts[k], cuts[k + 1]) of like numbers of instances.
inline std::vector<int64_t> cut_into_runs(const Input& input, int64_t instances) {
    std::vector<int64_t> cuts{0};
    for (int64_t j = 1; j <= input.b; ++j)
        if (j == input.b || input.start(j) - input.start(cuts.back()) + j - cuts.back() >= instances) cuts.push_back(j);
    return cuts;
}

// Calls solver.run(first, last) for all runs of bags, with a Solver(kernels, call) in each thread. `nanoseconds` is an estimate
// of the work. The first exception of any thread is thrown again in this one.
template <class Solver, class Call>
void for_all_bags(const Kernels& kernels, const Call& call, double nanoseconds, int threads) {
    if (nanoseconds < worth_a_thread) threads = 1;
    const Input& input = call.input;
    const int64_t share = threads > 1 ? (input.start(input.b) + input.b) / (4 * threads) + 1 : instances_in_run;
    const std::vector<int64_t> cuts = cut_into_runs(input, std::min(share, instances_in_run));
    const auto runs = static_cast<int64_t>(cuts.size()) - 1;
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto work = [&]() noexcept {
        try {
            Solver solver(kernels, call);
            for (int64_t k = next++; k < runs; k = next++) solver.run(cuts[k], cuts[k + 1]);
        } catch (...) {
            next = runs;
            const std::lock_guard<std::mutex> lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> helpers;
    if (threads > 1) helpers.reserve(static_cast<std::size_t>(threads));
    for (int64_t k = 1; k < std::min<int64_t>(threads, runs); ++k) {
        try {
            helpers.emplace_back(work);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: those there are do all of it
        }
    }
    work();
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace kofn
