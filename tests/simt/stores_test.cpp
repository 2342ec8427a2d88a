// Late stores: what kernels must not rely on does not hold, and every planted mistake is found.
#include "simt/stores.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "cuda/device/ptx.cuh"
#include "cuda/device/shared.cuh"
#include "simt/machine.h"

namespace simt {
namespace {

constexpr int kBlocks = 8;

class LateStores : public testing::Test {
  protected:
    void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
        GTEST_SKIP() << "SKIPPED: AddressSanitizer has marks of its own on the pages";
#endif
        before_ = order();
        ASSERT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
        order() = {true, 1};
        stores::settle();
    }
    void TearDown() override {
        cudaFree(memory_);
        order() = before_;
    }

    // The fault of a kernel, or "".
    template <class... Parameters>
    std::string fault_of(void (*kernel)(Parameters...), Start start, Parameters... arguments) {
        try {
            const OnGpu open(0);
            simt::run(
                dim3(kBlocks), dim3(64), [&] { kernel(arguments...); }, Site::current(), start);
        } catch (const Fault& fault) {
            return fault.what();
        }
        return "";
    }
    int* ints(size_t at = 0) {
        return static_cast<int*>(memory_) + at;
    }
    int value(size_t at) {
        const OnGpu open(0);
        return *ints(at);
    }
    void set(size_t at, int value) {
        const OnGpu open(0);
        *ints(at) = value;
        stores::settle();
    }

    static constexpr size_t kBytes = 16384;
    void* memory_ = nullptr;
    Order before_;
};

bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

// Each block stores a part of a sum; the last one to come adds them up in place 0. Parts follow
// from place 100 on, 400 ints from each other; the count of blocks is place 50.
template <bool fenced, bool given_back>
__global__ void sum_of_parts(int* memory) {
    __shared__ aerie::cuda::SharedArray<int, 1> last;
    if (threadIdx.x == 0) memory[100 + int(blockIdx.x) * 400] = 1 + int(blockIdx.x);
    if (fenced) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last[0] = atomicAdd(memory + 50, 1) == kBlocks - 1;
    __syncthreads();
    if (int(last[0]) == 0 || threadIdx.x > 0) return;
    __threadfence();
    int sum = 0;
    for (int i = 0; i < kBlocks; ++i) sum += memory[100 + i * 400];
    memory[0] = sum;
    if (given_back) memory[50] = 0;
}

TEST_F(LateStores, FencedPartsAreAddedUpInEveryReplay) {
    set(50, 0);
    for (int replay = 0; replay < 5; ++replay) {
        for (size_t i = 0; i < kBlocks; ++i) set(100 + i * 400, 0);
        set(0, 0);
        order().seed = unsigned(replay);
        EXPECT_EQ(fault_of(sum_of_parts<true, true>, Start::when_done, ints()), "");
        EXPECT_EQ(value(0), kBlocks * (kBlocks + 1) / 2);
        EXPECT_EQ(value(50), 0);
    }
}

TEST_F(LateStores, FindsAMissingFence) {
    set(50, 0);
    for (size_t i = 0; i < kBlocks; ++i) set(100 + i * 400, 0);
    EXPECT_EQ(fault_of(sum_of_parts<false, true>, Start::when_done, ints()), "");
    EXPECT_NE(value(0), kBlocks * (kBlocks + 1) / 2);
    for (int i = 0; i < kBlocks; ++i) EXPECT_EQ(value(100 + size_t(i) * 400), 1 + i);
    order().late_stores = false;  // this would not have shown it
    EXPECT_EQ(fault_of(sum_of_parts<false, true>, Start::when_done, ints()), "");
    EXPECT_EQ(value(0), kBlocks * (kBlocks + 1) / 2);
}

TEST_F(LateStores, FindsATicketThatIsNotGivenBack) {
    set(50, 0);
    EXPECT_TRUE(has(fault_of(sum_of_parts<true, false>, Start::when_done, ints()), "set back"));
}

__global__ void all_store_in_one_place(int* memory, bool alike) {
    if (threadIdx.x == 0) memory[0] = alike ? 7 : int(blockIdx.x);
}

TEST_F(LateStores, FindsBlocksThatDisagree) {
    EXPECT_EQ(fault_of(all_store_in_one_place, Start::when_done, ints(), true), "");
    EXPECT_EQ(value(0), 7);
    EXPECT_TRUE(has(fault_of(all_store_in_one_place, Start::when_done, ints(), false),
                    "different values in one place"));
}

__global__ void takes_the_neighbours(int* memory) {
    const int place = int(blockIdx.x) * 64 + int(threadIdx.x);
    const int next = memory[(place + 64) % (kBlocks * 64)];
    memory[place] = next + 1;
}

// In place and across blocks: each block reads what was there before the kernel, whatever the
// order.
TEST_F(LateStores, OtherBlocksSeeNothingBeforeTheEnd) {
    for (unsigned seed = 0; seed < 4; ++seed) {
        for (size_t i = 0; i < kBlocks * 64; ++i) set(i, int(i));
        order().seed = seed;
        EXPECT_EQ(fault_of(takes_the_neighbours, Start::when_done, ints()), "");
        for (int i = 0; i < kBlocks * 64; ++i)
            ASSERT_EQ(value(size_t(i)), (i + 64) % (kBlocks * 64) + 1) << i;
    }
}

__global__ void note_order(int* memory, int* next) {
    if (threadIdx.x == 0) memory[100 + atomicAdd(next, 1)] = int(blockIdx.x);
    if (threadIdx.x == 32) atomicExch(next + 1, 0);
}

TEST_F(LateStores, OrdersAreManyAndComplete) {
    std::set<std::vector<int>> orders;
    for (unsigned seed = 0; seed < 6; ++seed) {
        order().seed = seed;
        set(50, 0), set(51, 0);
        EXPECT_TRUE(has(fault_of(note_order, Start::when_done, ints(), ints(50)), "set back"));
        std::vector<int> blocks;
        for (size_t i = 0; i < kBlocks; ++i) blocks.push_back(value(100 + i));
        orders.insert(blocks);
        EXPECT_EQ(std::set<int>(blocks.begin(), blocks.end()).size(), size_t(kBlocks));
    }
    EXPECT_GT(orders.size(), 2u);
}

// Dependent launch: a producer, and consumers that are more or less right.

__global__ void produce(int* memory) {
    if (threadIdx.x == 0) memory[int(blockIdx.x)] = 40 + int(blockIdx.x);
}
__global__ void consume(int* memory) {
    const int weight = __ldg(memory + 2000);  // no kernel stores there
    wait_for_producers();
    if (threadIdx.x == 0) memory[1000 + int(blockIdx.x)] = memory[int(blockIdx.x)] + weight;
}
__global__ void consume_too_early(int* memory) {
    const int value = memory[int(blockIdx.x)];
    wait_for_producers();
    if (threadIdx.x == 0) memory[1000 + int(blockIdx.x)] = value;
}
__global__ void one_waits_for_all(int* memory) {
    if (threadIdx.x == 0) wait_for_producers();
    if (threadIdx.x == 1) memory[1000 + int(blockIdx.x)] = memory[int(blockIdx.x)];
}
__global__ void store_too_early(int* memory) {
    if (threadIdx.x == 0) memory[1000 + int(blockIdx.x)] = 1;
    wait_for_producers();
}
__global__ void never_wait(int* memory, bool store) {
    if (store && threadIdx.x == 0) memory[1000 + int(blockIdx.x)] = 1;
}
__global__ void most_blocks_leave(int* memory) {
    if (blockIdx.x > 0) return;
    wait_for_producers();
    if (threadIdx.x == 0) memory[1000] = memory[0];
}

TEST_F(LateStores, ADependentSeesItsProducerOnceItHasWaited) {
    set(2000, 2);
    for (Start start : {Start::when_done, Start::beside}) {
        EXPECT_EQ(fault_of(produce, Start::when_done, ints()), "");
        EXPECT_EQ(fault_of(consume, start, ints()), "");
        for (size_t i = 0; i < kBlocks; ++i) {
            EXPECT_EQ(value(1000 + i), 42 + int(i));
            EXPECT_EQ(value(i), 40 + int(i));
        }
        EXPECT_EQ(fault_of(most_blocks_leave, start, ints()), "");
        EXPECT_EQ(value(1000), 40);
    }
}

TEST_F(LateStores, FindsWhatADependentReadsTooEarly) {
    for (unsigned seed = 0; seed < 3; ++seed) {
        order().seed = seed;
        for (size_t i = 0; i < kBlocks; ++i) set(i, 0x7f7f7f7f);  // not a byte stays what it was
        EXPECT_EQ(fault_of(produce, Start::when_done, ints()), "");
        EXPECT_EQ(fault_of(consume_too_early, Start::beside, ints()), "");
        for (size_t i = 0; i < kBlocks; ++i) EXPECT_EQ(value(1000 + i), -1);
    }
    EXPECT_EQ(fault_of(produce, Start::when_done, ints()), "");
    EXPECT_NE(fault_of(one_waits_for_all, Start::beside, ints()), "");
}

// A kernel that starts beside another, which started beside a third one, must not see the stores of
// the third one either.
TEST_F(LateStores, FindsWhatIsReadTooEarlyTwoKernelsOn) {
    set(2000, 0);
    EXPECT_EQ(fault_of(produce, Start::when_done, ints()), "");
    EXPECT_EQ(fault_of(consume, Start::beside, ints()), "");
    EXPECT_EQ(fault_of(consume_too_early, Start::beside, ints()), "");
    EXPECT_EQ(value(1000), -1);
    EXPECT_EQ(fault_of(consume, Start::when_done, ints()), "");
    EXPECT_EQ(value(1000), 40);
}

TEST_F(LateStores, FindsADependentThatStoresTooEarlyOrNeverWaits) {
    EXPECT_TRUE(has(fault_of(store_too_early, Start::beside, ints()), "before it has waited"));
    EXPECT_TRUE(has(fault_of(never_wait, Start::beside, ints(), true), "never waits"));
    EXPECT_TRUE(has(fault_of(never_wait, Start::beside, ints(), false), "never waits"));
    EXPECT_EQ(fault_of(never_wait, Start::when_done, ints(), true), "");
}

// A fault leaves the memory as usable as before.
TEST_F(LateStores, GoOnBehindAFault) {
    EXPECT_NE(fault_of(store_too_early, Start::beside, ints()), "");
    EXPECT_EQ(fault_of(produce, Start::when_done, ints()), "");
    EXPECT_EQ(value(3), 43);
}

__global__ void loads_16_bytes(const unsigned* from, unsigned* to) {
    to[threadIdx.x] = __ldg(reinterpret_cast<const uint4*>(from)).x;
}
__global__ void copies_16_bytes(const unsigned* from) {
    __shared__ aerie::cuda::SharedArray<uint4, 64> space;
    aerie::cuda::copy_async(space, int(threadIdx.x), reinterpret_cast<const uint4*>(from));
}

TEST_F(LateStores, FindsAddressesThatAreNotAligned) {
    const unsigned* from = reinterpret_cast<const unsigned*>(ints());
    unsigned* to = reinterpret_cast<unsigned*>(ints(400));
    EXPECT_EQ(fault_of(loads_16_bytes, Start::when_done, from, to), "");
    EXPECT_EQ(fault_of(copies_16_bytes, Start::when_done, from), "");
    EXPECT_TRUE(has(fault_of(loads_16_bytes, Start::when_done, from + 2, to), "loads 16 bytes"));
    EXPECT_TRUE(has(fault_of(copies_16_bytes, Start::when_done, from + 1), "loads 16 bytes"));
}

// Found by the compiler's checks, with which all sources of the backend are built.
__global__ void dereferences_16_bytes(const unsigned* from, unsigned* to) {
    to[threadIdx.x] = reinterpret_cast<const uint4*>(from)->y;
}

TEST_F(LateStores, FindsPlainLoadsThatAreNotAligned) {
    const unsigned* from = reinterpret_cast<const unsigned*>(ints());
    unsigned* to = reinterpret_cast<unsigned*>(ints(400));
    EXPECT_EQ(fault_of(dereferences_16_bytes, Start::when_done, from, to), "");
    EXPECT_DEATH(fault_of(dereferences_16_bytes, Start::when_done, from + 2, to), "alignment");
}

// Late stores open nothing to the host, nor anything beyond a buffer's end: such an access still
// ends the program.
TEST_F(LateStores, HostsAreStillKeptOut) {
    EXPECT_DEATH(++ints()[0], "");
    EXPECT_EQ(fault_of(produce, Start::when_done, ints()), "");
    EXPECT_DEATH(++ints()[0], "");
    EXPECT_DEATH(fault_of(produce, Start::when_done, ints(kBytes / sizeof(int))), "");
}

}  // namespace
}  // namespace simt
