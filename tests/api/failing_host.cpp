// operator new of a program whose memory may fail.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "api/failing.h"

namespace {

std::atomic<size_t> requests = 0, failing = 0;

void* allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
    if (++requests == failing) throw std::bad_alloc();
    const std::size_t whole =
        (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
    void* block = whole < size ? nullptr : std::aligned_alloc(alignment, whole);
    if (!block) throw std::bad_alloc();
    return block;
}

}  // namespace

void* operator new(std::size_t size) {
    return allocate(size);
}
void* operator new[](std::size_t size) {
    return allocate(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocate(size, std::size_t(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return allocate(size, std::size_t(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // of stable_sort
    try {
        return allocate(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* block) noexcept {
    std::free(block);
}
void operator delete[](void* block) noexcept {
    std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
    std::free(block);
}
void operator delete[](void* block, std::size_t) noexcept {
    std::free(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
    std::free(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
    std::free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
    std::free(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
    std::free(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept {
    std::free(block);
}

namespace aerie::test {

void fail_host(size_t n) {
    requests = 0;
    failing = n;
}

size_t host_requests() {
    return requests;
}

}  // namespace aerie::test
