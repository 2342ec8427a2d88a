// An execution model of CUDA device code on the host: the threads of a block are fibers, blocks run
// one after the other, in any order where stores are late. What the hardware would let pass is a
// Fault here: a barrier that not all threads reach, a warp that meets in two places, shared memory
// that is read before it is written or that two threads touch without a barrier between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>

namespace simt {

// One line: the kernel's launch, block and thread, and what it did.
class Fault : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

struct Index {
    unsigned x = 0, y = 0, z = 0;
};

constexpr int kWarp = 32;
using Site = std::source_location;

// When a kernel begins: once the one before it on its stream has ended, or while that still runs,
// by programmatic dependent launch. Only late stores (simt/stores.h) tell them apart.
enum class Start { when_done, beside };

// Runs `body` as every thread of a grid. `launched` is named in faults.
void run(Index grid, Index block, const std::function<void()>& body, Site launched,
         Start start = Start::when_done);

// The thread that is running; null outside of run().
struct Thread {
    Index index;
    int number;  // within its block
    int lane() const { return number % kWarp; }
    int warp() const { return number / kWarp; }
};
const Thread* current();
uint32_t block_serial();  // of the block that is running, over all blocks that ever ran

[[noreturn]] void fault(const std::string& what);
// A GPU refuses an address that is not a multiple of what it loads.
void check_alignment(const void* at, size_t bytes);

void barrier(Site site);  // __syncthreads
// griddepcontrol.wait: what kernels before this one stored is there. All threads of a block do it.
void wait_for_producers(Site site = Site::current());
void fence();  // __threadfence: other blocks see what this one stored

// Waits until all 32 lanes are here, each with an item of its own; the last one to come calls
// all_here(items) for all.
void meet(void* item, void (*all_here)(void* const* items), Site site);
void warp_barrier(Site site);  // __syncwarp: orders shared memory too

template <class Item>
void meet(Item& item, void (*all_here)(void* const* items), Site site) {
    meet(static_cast<void*>(&item), all_here, site);
}

// What is known of one element of shared memory.
class Cell {
  public:
    void write();
    void read();
    void spoil() { block_ = 0; }  // as if nothing had been written

  private:
    struct Access {
        uint32_t barriers = 0, warp_barriers = 0;
        int thread = -1;  // of the last one; kSeveral of a warp, kWarps
        int warp = -1;
    };
    static constexpr int kSeveral = -2, kWarps = -3;
    static bool ordered(const Access& access);
    static Access here();

    uint32_t block_ = 0;  // serial number of the block that wrote it
    Access writer_, reader_;
};

}  // namespace simt
