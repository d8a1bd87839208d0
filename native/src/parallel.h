// Work shared among threads that live no longer than the call: runs of bags, or chunks of one bag.
//
// No pool is kept: threads of a pool do not survive fork(), which data loaders use, and starting a thread costs some 20
// us against the 2 ms of work that are asked for before any is started.
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
constexpr int64_t runs_to_share = 32;        // at least

// Calls make(worker) once in each of up to `threads` threads, and what that returns with the number of every task in
// turn, whichever thread is free. The first exception of any thread is thrown again in this one.
template <class Make>
void share(int64_t tasks, int threads, Make make) {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto work = [&](int worker) noexcept {
        try {
            auto run = make(worker);
            for (int64_t k = next++; k < tasks; k = next++) run(k);
        } catch (...) {
            next = tasks;
            const std::lock_guard<std::mutex> lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> helpers;
    if (threads > 1) helpers.reserve(static_cast<std::size_t>(threads));
    for (int k = 1; k < std::min<int64_t>(threads, tasks); ++k) {
        try {
            helpers.emplace_back(work, k);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: those there are do all of it
        }
    }
    work(0);
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

// Bags [first, last).
struct Run {
    int64_t first, last;
};

// The bags of at most `largest` instances, in runs of like numbers of instances.
inline std::vector<Run> cut_into_runs(const Input& input, int64_t instances, int64_t largest) {
    std::vector<Run> runs;
    int64_t first = 0;
    for (int64_t j = 0; j <= input.b; ++j) {
        const bool left_out = j < input.b && input.size(j) > largest;
        const bool full = input.start(j) - input.start(first) + j - first >= instances;
        if (first < j && (j == input.b || left_out || full)) {
            runs.push_back({first, j});
            first = j;
        }
        if (left_out) first = j + 1;
    }
    return runs;
}

// Calls solver.run(first, last) for all runs of bags of at most `largest` instances, with a Solver(kernels, call) in
// each thread. `nanoseconds` is an estimate of the work.
template <class Solver, class Call>
void for_all_bags(const Kernels& kernels, const Call& call, double nanoseconds, int threads, int64_t largest) {
    const bool shared = nanoseconds >= worth_a_thread;
    if (!shared) threads = 1;
    const Input& input = call.input;
    // Which small bags are done side by side shows in the last digit: runs are the same for any number of threads.
    const int64_t evenly = shared ? (input.start(input.b) + input.b) / runs_to_share + 1 : instances_in_run;
    const std::vector<Run> runs = cut_into_runs(input, std::min(evenly, instances_in_run), largest);
    share(static_cast<int64_t>(runs.size()), threads, [&](int) {
        return [solver = Solver(kernels, call), &runs](int64_t k) mutable { solver.run(runs[k].first, runs[k].last); };
    });
}

}  // namespace kofn
