// An execution model of CUDA device code on the host: the threads of a block are fibers, and blocks
// run one after the other, in shuffled order if stores are late. Mistakes that the hardware would
// let pass are a Fault here: a barrier that not all threads reach, a warp that meets in two places,
// shared memory that is read before it is written, or that two threads touch without a barrier
// between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>

namespace simt {

// Its message is one line: the kernel's launch, block and thread, and what it did.
class Fault : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

struct Index {
    unsigned x = 0, y = 0, z = 0;
};

constexpr int kWarp = 32;
using Site = std::source_location;

// When a kernel begins: once the one before it on its stream has ended, or, by programmatic
// dependent launch, while that one still runs. The two differ only if stores are late
// (simt/stores.h).
enum class Start { when_done, beside };

// Runs `body` as every thread of a grid. `launched` is named in faults.
void run(Index grid, Index block, const std::function<void()>& body, Site launched,
         Start start = Start::when_done);

// A thread of a block. current() is the one that is running, or null outside of run().
struct Thread {
    Index index;
    int number;  // within its block
    int lane() const { return number % kWarp; }
    int warp() const { return number / kWarp; }
};
const Thread* current();
uint32_t block_serial();  // number of the running block, of all that ever ran

[[noreturn]] void fault(const std::string& what);
// A GPU refuses an address that is not a multiple of what it loads.
void check_alignment(const void* at, size_t bytes);

void barrier(Site site);  // __syncthreads
// griddepcontrol.wait: afterwards the stores of the kernels before this one are there. All threads
// of a block must call it.
void wait_for_producers(Site site = Site::current());
void fence();  // __threadfence: other blocks see what this one stored

// Waits until all 32 lanes have called it, each with an item of its own; the last one calls
// all_here(items) for all.
void meet(void* item, void (*all_here)(void* const* items), Site site);
void warp_barrier(Site site);  // __syncwarp: orders shared memory too

template <class Item>
void meet(Item& item, void (*all_here)(void* const* items), Site site) {
    meet(static_cast<void*>(&item), all_here, site);
}

// The newest accesses to one element of shared memory; one that no barrier orders is a fault.
class Cell {
  public:
    void write();
    void read();
    void spoil() { block_ = 0; }  // as if nothing had been written

  private:
    struct Access {
        uint32_t barriers = 0, warp_barriers = 0;
        int thread = -1;  // the last one; kSeveral: threads of a warp; kWarps: of several
        int warp = -1;
    };
    static constexpr int kSeveral = -2, kWarps = -3;
    static bool ordered(const Access& access);
    static Access here();

    uint32_t block_ = 0;  // serial number of the block that wrote it
    Access writer_, reader_;
};

}  // namespace simt
