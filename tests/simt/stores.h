// What kernels store to device memory, and when others see it. A real GPU promises a block nothing
// of the stores of other blocks before a fence or the end of their kernel, and a kernel that starts
// beside another nothing of that one's before it has waited for it. While stores are late here,
// that is so: device memory is read-only until a store comes, a page that a block has stored to is
// put back behind it, and what it stored comes at the end of the kernel; bytes that a kernel must
// not have read yet are all ones. So the last block of a sum that nobody fenced adds up what was
// there before. A store of what is there already is not seen.
#pragma once

#include <cstddef>
#include <functional>

#include "simt/model.h"

namespace simt {

// Whether stores are late; `seed` is that of the order of blocks and threads. As the environment
// variable AERIE_SIMT_SEED says when a program starts, else they are not.
struct Order {
    bool late_stores = false;
    unsigned seed = 0;
};
Order& order();

// Of the kernel that runs, one at a time. None of them does anything unless stores are late.
namespace stores {

void begin_kernel(Start start);
void begin_block();
void end_block();
void end_kernel();
void give_up();            // a fault: memory may be touched again, whatever is in it
bool sees_producers();     // the running block
void let_see_producers();  // it has waited
void publish();            // its stores so far

// A change that all blocks see at once: the count of an atomic, which must be as it was before when
// the kernel has ended, or a replay finds another.
void change(void* at, size_t bytes, const std::function<void()>& work);

// Something else than a kernel came: what was stored is there for all that follow.
void settle();

}  // namespace stores

// Device memory that may be touched just now: of memory.cpp. Pages begin at `begin`.
void for_each_open_buffer(const std::function<void(std::byte* begin, size_t bytes)>& what);
bool is_open_memory(const void* at);

}  // namespace simt
