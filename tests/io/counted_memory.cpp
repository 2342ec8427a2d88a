// operator new and delete of a program that counts; of one thread.
#include "io/counted_memory.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> held = 0, most = 0, begun = 0;

void* allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
    // aligned_alloc takes whole multiples.
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
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // of stable_sort
    try {
        return allocate(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* block, const std::nothrow_t&) noexcept {
    release(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
    release(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
    release(block);
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

namespace aerie::test {

void begin_count() {
    begun = held.load();
    most = held.load();
}

size_t most_since_begin() {
    return most - begun;
}

}  // namespace aerie::test
