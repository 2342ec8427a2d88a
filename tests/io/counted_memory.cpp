// operator new and delete of a program that counts; of one thread.
#include "io/counted_memory.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> held = 0, most = 0, begun = 0;

void* allocate(std::size_t size) {
    void* block = std::malloc(std::max<std::size_t>(size, 1));
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
