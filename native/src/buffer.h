// Scratch memory that grows when asked to. At the end of its scope the thread keeps it for its next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace kofn {

// Blocks of memory that one thread's calls hand on to its next. Without them the C library returns the scratch of a
// call to the system and the next call pays for every page again: more than half the time of 128 bags of 32. A thread
// keeps what a run of bags needs, never what one huge bag did.
class Recycler {
public:
    struct Block {
        void* start = nullptr;
        std::size_t size = 0;
    };

    static Recycler& of_this_thread() {
        thread_local Recycler recycler;
        return recycler;
    }
    Recycler() = default;
    Recycler(const Recycler&) = delete;
    Recycler& operator=(const Recycler&) = delete;
    ~Recycler() {
        for (Block& block : blocks_) ::operator delete(block.start);
    }

    // The smallest block kept that is large enough, or a new one.
    Block take(std::size_t size) {
        Block* best = nullptr;
        for (Block& block : blocks_)
            if (block.size >= size && (!best || block.size < best->size)) best = &block;
        if (!best) return {::operator new(size), size};
        kept_ -= best->size;
        return std::exchange(*best, {});
    }

    void give(Block block) noexcept {
        if (kept_ + block.size <= most)
            for (Block& place : blocks_)
                if (!place.start) {
                    kept_ += block.size;
                    place = block;
                    return;
                }
        ::operator delete(block.start);
    }

private:
    static constexpr std::size_t most = std::size_t{1} << 22;
    Block blocks_[8];
    std::size_t kept_ = 0;
};

// Numbers without initial values (std::vector would write zeros: a millisecond for a million instances),
// aligned for any vector register.
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }

    // At least `size` numbers. If there were fewer, what was there before is lost. A size below zero is one that has
    // overflowed: there is no memory for it, nor for as many bytes as no pointer can tell apart.
    double* reserve(int64_t size) {
        if (size < 0 || size > most_numbers) throw std::bad_alloc();
        if (size > size_) {
            release();
            allocate(size);
        }
        return data_;
    }
    double* data() const { return data_; }

private:
    static constexpr std::size_t vector_alignment = 64;
    static constexpr std::size_t huge_page = std::size_t{1} << 21;
    static constexpr int64_t most_numbers = PTRDIFF_MAX / 16;

    void allocate(int64_t size) {
        auto bytes = static_cast<std::size_t>(size) * sizeof(double);
        // Fresh memory is mapped page by page as it is first touched, which for a million instances takes longer than
        // all the arithmetic. Huge pages, where the system has them, make that a matter of a few faults.
        huge_ = bytes >= huge_page / 2;
        if (huge_) bytes = (bytes + huge_page - 1) / huge_page * huge_page;
        // Aligned by hand: asked for alignment, the C library cuts its blocks to fit, which takes longer than a small
        // bag.
        std::size_t room = bytes + alignment();
        block_ = Recycler::of_this_thread().take(room);
        void* start = block_.start;
        data_ = static_cast<double*>(std::align(alignment(), bytes, start, room));
        size_ = static_cast<int64_t>(bytes / sizeof(double));
#ifdef MADV_HUGEPAGE
        if (huge_) madvise(data_, bytes, MADV_HUGEPAGE);  // advice: nothing depends on whether it is taken
#endif
    }

    void release() noexcept {
        if (block_.start) Recycler::of_this_thread().give(block_);
        block_ = {};
        data_ = nullptr;
        size_ = 0;
    }

    std::size_t alignment() const { return huge_ ? huge_page : vector_alignment; }

    Recycler::Block block_;  // as it was got, `data_` is its first aligned number
    double* data_ = nullptr;
    int64_t size_ = 0;
    bool huge_ = false;
};

}  // namespace kofn
