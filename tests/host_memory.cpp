#include "host_memory.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> requests = 0, failing = 0, held = 0, most = 0, begun = 0;

void* allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
    if (++requests == failing) throw std::bad_alloc();
    // The size given to aligned_alloc must be a multiple of the alignment.
    const std::size_t whole =
        (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
    void* block = whole < size ? nullptr : std::aligned_alloc(alignment, whole);
    if (!block) throw std::bad_alloc();
    held += ::malloc_usable_size(block);
    most = std::max(most.load(), held.load());
    return block;
}

void release(void* block) noexcept {
    if (block) held -= ::malloc_usable_size(block);
    std::free(block);
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
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // called by stable_sort
    try {
        return allocate(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* block) noexcept {
    release(block);
}
void operator delete[](void* block) noexcept {
    release(block);
}
void operator delete(void* block, std::size_t) noexcept {
    release(block);
}
void operator delete[](void* block, std::size_t) noexcept {
    release(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
    release(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
    release(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
    release(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
    release(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept {
    release(block);
}

namespace aerie::test {

void begin_count() {
    fail_host(0);
}

void fail_host(size_t n) {
    begun = most = held.load();
    requests = 0;
    failing = n;
}

size_t host_requests() {
    return requests;
}

size_t most_since_begin() {
    return most - begun;
}

}  // namespace aerie::test
