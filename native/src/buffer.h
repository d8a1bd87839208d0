// Scratch memory that grows when asked to and is given back at the end of its scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace kofn {

// Numbers without initial values (std::vector would write zeros: a millisecond for a million instances),
// aligned for any vector register.
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }

    // At least `size` numbers. If there were fewer, what was there before is lost.
    double* reserve(int64_t size) {
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

    void allocate(int64_t size) {
        auto bytes = static_cast<std::size_t>(size) * sizeof(double);
        // Fresh memory is mapped page by page as it is first touched, which for a million instances takes longer than
        // all the arithmetic. Huge pages, where the system has them, make that a matter of a few faults.
        huge_ = bytes >= huge_page / 2;
        if (huge_) bytes = (bytes + huge_page - 1) / huge_page * huge_page;
        // Aligned by hand: asked for alignment, the C library cuts its blocks to fit, which takes longer than a small bag.
        std::size_t room = bytes + alignment();
        void* start = raw_ = ::operator new(room);
        data_ = static_cast<double*>(std::align(alignment(), bytes, start, room));
        size_ = static_cast<int64_t>(bytes / sizeof(double));
#ifdef MADV_HUGEPAGE
        if (huge_) madvise(data_, bytes, MADV_HUGEPAGE);  // advice: nothing depends on whether it is taken
#endif
    }

    void release() noexcept {
        ::operator delete(raw_);
        raw_ = nullptr;
        data_ = nullptr;
        size_ = 0;
    }

    std::size_t alignment() const { return huge_ ? huge_page : vector_alignment; }

    void* raw_ = nullptr;  // as it was got, `data_` is its first aligned number
    double* data_ = nullptr;
    int64_t size_ = 0;
    bool huge_ = false;
};

}  // namespace kofn
