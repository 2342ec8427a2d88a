// Stores of kernels to device memory, and when others see them. A real GPU does not promise a block
// that it sees stores of other blocks before a fence or the end of their kernel, and does not
// promise a kernel that starts beside another that it sees any of that one's stores before it has
// waited for it. While stores are late, they are not seen earlier here. Device memory is read-only
// until a store comes; a page to which a block has stored is put back behind it, and its stores
// come at the end of the kernel; bytes that a kernel must not have read yet are all ones. So
// without a fence the last block of a sum adds up what was there before. A store of what is there
// already is not seen.
#pragma once

#include <cstddef>
#include <functional>

#include "simt/model.h"

namespace simt {

// Whether stores are late, and the seed for the order of blocks and threads. When a program starts,
// the environment variable AERIE_SIMT_SEED makes stores late and is the seed; without it they are
// not late.
struct Order {
    bool late_stores = false;
    unsigned seed = 0;
};
Order& order();

// These functions are for the running kernel, of which there is one at a time. None of them does
// anything unless stores are late.
namespace stores {

void begin_kernel(Start start);
void begin_block();
void end_block();
void end_kernel();
void give_up();            // after a fault: memory may be touched again, whatever is in it
bool sees_producers();     // whether the running block sees them
void let_see_producers();  // the running block has waited
void publish();            // the running block's stores so far

// Makes a change that all blocks see at once: the count of an atomic. When the kernel has ended the
// count must be as it was before, or a replay would begin with another one.
void change(void* at, size_t bytes, const std::function<void()>& work);

// Called when something else than a kernel comes: all that follows sees what was stored.
void settle();

}  // namespace stores

// The device memory that may be touched at present; memory.cpp defines these two. Pages begin at
// `begin`.
void for_each_open_buffer(const std::function<void(std::byte* begin, size_t bytes)>& what);
bool is_open_memory(const void* at);

}  // namespace simt
