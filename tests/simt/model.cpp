// Fibers for the threads of a block, their barriers, and the checks of shared memory.
#include "simt/model.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "simt/fiber.h"
#include "simt/stores.h"

// The variables that CUDA has built in; see include/cuda_runtime.h.
simt::Index threadIdx, blockIdx;
simt::Index blockDim, gridDim;

namespace simt {

namespace {

enum class State : uint8_t { ready, at_barrier, at_meeting, at_producers, finished };

struct FiberThread : Thread {
    Fiber fiber;
    State state = State::finished;
    Site site;
};

struct Warp {
    void* items[kWarp];
    int waiting = 0;
    Site site;
    uint32_t barriers = 0;
};

// The block that is running. There is one at a time.
struct Block {
    std::vector<std::unique_ptr<FiberThread>> threads;  // as many as the largest block so far had
    int count = 0;
    std::vector<Warp> warps;
    int at_barrier = 0;
    Site barrier_site;
    uint32_t barriers = 0;
    uint32_t serial = 0;  // counts all blocks that ever ran; 0: none
    FiberThread* running = nullptr;
    const std::function<void()>* body = nullptr;
    Site launched;
    std::exception_ptr failure;
};
Block block;

std::string text(const Index& i) {
    return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) +
           ")";
}

std::string text(const Site& site) {
    const std::string file = site.file_name();
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line()) + ":" +
           std::to_string(site.column());
}

// Columns are compared too, since a line may hold two barriers.
bool same_place(const Site& a, const Site& b) {
    return a.line() == b.line() && a.column() == b.column() &&
           std::string_view(a.file_name()) == b.file_name();
}

void run_thread(void*) {
    FiberThread& self = *block.running;
    try {
        (*block.body)();
    } catch (...) {
        if (!block.failure) block.failure = std::current_exception();
    }
    self.state = State::finished;
    self.fiber.leave(true);
}

void wait_as(State state, Site site) {
    FiberThread& self = *block.running;
    self.state = state;
    self.site = site;
    self.fiber.leave(false);
}

void resume(FiberThread& thread) {
    block.running = &thread;
    threadIdx = thread.index;
    thread.fiber.enter();
    block.running = nullptr;
}

[[noreturn]] void report_stuck() {
    std::string what;
    bool finished = false;
    for (int i = 0; i < block.count; ++i) {
        const FiberThread& thread = *block.threads[size_t(i)];
        finished = finished || thread.state == State::finished;
        if (thread.state == State::finished || !what.empty()) continue;
        what = "thread " + text(thread.index) + " waits for ever in " +
               (thread.state == State::at_barrier     ? "__syncthreads"
                : thread.state == State::at_producers ? "a wait for the kernel before it"
                                                      : "a warp's meeting") +
               " at " + text(thread.site);
    }
    fault(what + (finished ? ": others have finished" : ": others wait elsewhere"));
}

void start_block(Index size) {
    block.count = int(size.x * size.y * size.z);
    while (int(block.threads.size()) < block.count)
        block.threads.push_back(std::make_unique<FiberThread>());
    block.warps.assign(size_t(block.count / kWarp), Warp());
    block.at_barrier = 0;
    block.barriers = 1;
    ++block.serial;
    for (int i = 0; i < block.count; ++i) {
        FiberThread& thread = *block.threads[size_t(i)];
        const unsigned n = unsigned(i);
        thread.index = {n % size.x, n / size.x % size.y, n / size.x / size.y};
        thread.number = i;
        thread.state = State::ready;
        thread.fiber.start(run_thread, nullptr);
    }
}

void release(State state, int first, int count) {
    for (int i = first; i < first + count; ++i)
        if (block.threads[size_t(i)]->state == state)
            block.threads[size_t(i)]->state = State::ready;
}

// The numbers 0 .. count - 1, forwards and backwards in turn, so that a kernel that relies on one
// order fails; shuffled if stores are late.
std::vector<unsigned> order_of(size_t count, bool backwards) {
    std::vector<unsigned> places(count);
    std::iota(places.begin(), places.end(), 0u);
    if (backwards) std::reverse(places.begin(), places.end());
    if (order().late_stores)
        std::shuffle(places.begin(), places.end(), std::mt19937(order().seed + block.serial));
    return places;
}

// Lets a block go on if every thread that has not ended waits for producers. False if it does not.
bool goes_on_behind_producers() {
    int waiting = 0, others = 0;
    for (int i = 0; i < block.count; ++i) {
        const State state = block.threads[size_t(i)]->state;
        if (state != State::finished) ++(state == State::at_producers ? waiting : others);
    }
    if (waiting == 0 || others > 0) return false;
    stores::let_see_producers();
    release(State::at_producers, 0, block.count);
    return true;
}

void run_block() {
    stores::begin_block();
    const std::vector<unsigned> places = order_of(size_t(block.count), block.serial % 2);
    for (int finished = 0; finished < block.count;) {
        bool moved = false;
        for (const unsigned place : places) {
            FiberThread& thread = *block.threads[place];
            if (thread.state != State::ready) continue;
            resume(thread);
            if (block.failure) std::rethrow_exception(std::exchange(block.failure, nullptr));
            finished += thread.state == State::finished;
            moved = true;
        }
        if (!moved && !goes_on_behind_producers()) report_stuck();
    }
    stores::end_block();
}

void run_blocks(Index grid, Index size) {
    for (const unsigned n : order_of(grid.x * grid.y * grid.z, block.serial % 2)) {
        blockIdx = {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y};
        start_block(size);
        run_block();
    }
}

}  // namespace

const Thread* current() {
    return block.running;
}

uint32_t block_serial() {
    return block.serial;
}

void fault(const std::string& what) {
    std::string where = text(block.launched) + ", block " + text(blockIdx);
    if (block.running) where += ", thread " + text(block.running->index);
    throw Fault(where + ": " + what);
}

void check_alignment(const void* at, size_t bytes) {
    if (reinterpret_cast<uintptr_t>(at) % bytes != 0)
        fault("loads " + std::to_string(bytes) + " bytes at an address that is no multiple of it");
}

void run(Index grid, Index size, const std::function<void()>& body, Site launched, Start start) {
    block.body = &body;
    block.launched = launched;
    blockDim = size;
    gridDim = grid;
    if (size.x * size.y * size.z == 0 || size.x * size.y * size.z > 1024 ||
        size.x * size.y * size.z % kWarp != 0)
        fault("a block of " + text(size) + " threads; whole warps, at most 1024, are wanted");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
        fault("a grid of " + text(grid) + " blocks");
    stores::begin_kernel(start);
    try {
        run_blocks(grid, size);
        stores::end_kernel();
    } catch (...) {
        block.running = nullptr;
        stores::give_up();
        throw;
    }
}

void wait_for_producers(Site site) {
    if (!stores::sees_producers()) wait_as(State::at_producers, site);
}

void fence() {
    stores::publish();
}

void barrier(Site site) {
    if (block.at_barrier == 0) block.barrier_site = site;
    if (!same_place(site, block.barrier_site))
        fault("__syncthreads at " + text(site) + ", but other threads are at " +
              text(block.barrier_site));
    if (++block.at_barrier < block.count) return wait_as(State::at_barrier, site);
    block.at_barrier = 0;
    ++block.barriers;
    release(State::at_barrier, 0, block.count);
}

void meet(void* item, void (*all_here)(void* const* items), Site site) {
    const int number = block.running->number;
    Warp& warp = block.warps[size_t(number / kWarp)];
    if (warp.waiting == 0) warp.site = site;
    if (!same_place(site, warp.site))
        fault("the warp's lanes meet at " + text(site) + " and at " + text(warp.site));
    warp.items[number % kWarp] = item;
    if (++warp.waiting < kWarp) return wait_as(State::at_meeting, site);
    warp.waiting = 0;
    if (all_here) all_here(warp.items);
    release(State::at_meeting, number / kWarp * kWarp, kWarp);
}

void warp_barrier(Site site) {
    int nothing = 0;
    meet(
        &nothing, [](void* const*) { ++block.warps[size_t(block.running->warp())].barriers; },
        site);
}

Cell::Access Cell::here() {
    const FiberThread& thread = *block.running;
    return {block.barriers, block.warps[size_t(thread.warp())].barriers, thread.number,
            thread.warp()};
}

// Whether the running thread may rely on an access having happened before.
bool Cell::ordered(const Access& access) {
    const Access now = here();
    if (access.thread == now.thread || access.barriers != now.barriers) return true;
    return access.warp == now.warp && access.thread != kWarps &&
           access.warp_barriers != now.warp_barriers;
}

void Cell::write() {
    if (!block.running) fault("shared memory is written outside of a kernel");
    if (block_ == block.serial && !ordered(writer_))
        fault("writes shared memory that thread number " + std::to_string(writer_.thread) +
              " wrote, without a barrier between");
    if (block_ == block.serial && reader_.thread != -1 && !ordered(reader_))
        fault("writes shared memory that another thread reads, without a barrier between");
    block_ = block.serial;
    writer_ = here();
    reader_ = {};
}

void Cell::read() {
    if (!block.running) fault("shared memory is read outside of a kernel");
    if (block_ != block.serial) fault("reads shared memory that nothing wrote");
    if (!ordered(writer_))
        fault("reads shared memory that thread number " + std::to_string(writer_.thread) +
              " wrote, without a barrier between");
    const Access now = here();
    const bool first = reader_.thread == -1 || reader_.barriers != now.barriers ||
                       (reader_.warp == now.warp && reader_.thread != kWarps &&
                        reader_.warp_barriers != now.warp_barriers);
    if (first)
        reader_ = now;
    else if (reader_.warp != now.warp)
        reader_.thread = kWarps;
    else if (reader_.thread != now.thread && reader_.thread != kWarps)
        reader_.thread = kSeveral;
}

}  // namespace simt
