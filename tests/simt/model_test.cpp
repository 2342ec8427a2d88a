// The execution model itself: what kernels may rely on holds, and every planted mistake is found.
#include "simt/model.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "cuda/device/ptx.cuh"
#include "cuda/device/shared.cuh"
#include "simt/machine.h"

namespace simt {
namespace {

using aerie::cuda::SharedArray;

// The fault of a kernel, or "".
template <class... Parameters>
std::string fault_of(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                     Parameters... arguments) {
    try {
        simt::run(
            grid, block, [&] { kernel(arguments...); }, simt::Site::current());
    } catch (const Fault& fault) {
        return fault.what();
    }
    return "";
}

bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

__global__ void count_threads(int* hits) {
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    ++hits[block * blockDim.x * blockDim.y * blockDim.z + thread];
}

TEST(Model, RunsEveryThreadOfEveryBlockOnce) {
    std::vector<int> hits(2 * 3 * 4 * 64);
    EXPECT_EQ(fault_of(count_threads, dim3(2, 3, 4), dim3(8, 4, 2), hits.data()), "");
    for (int hit : hits) EXPECT_EQ(hit, 1);
}

TEST(Model, RefusesImpossibleLaunches) {
    std::vector<int> hits(2048);
    EXPECT_TRUE(has(fault_of(count_threads, dim3(1), dim3(2048), hits.data()), "at most 1024"));
    EXPECT_TRUE(has(fault_of(count_threads, dim3(1), dim3(33), hits.data()), "whole warps"));
    EXPECT_TRUE(has(fault_of(count_threads, dim3(1, 70000), dim3(32), hits.data()), "a grid"));
}

// Sums of 256 numbers by shuffles and shared memory.
__global__ void sum_kernel(const int* from, int* to) {
    __shared__ SharedArray<int, 8> sums;
    const int thread = int(threadIdx.x);
    int sum = from[blockIdx.x * 256 + threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (thread % 32 == 0) sums[thread / 32] = sum;
    __syncthreads();
    int total = 0;
    for (int i = 0; i < 8; ++i) total += sums[i];
    if (thread == 77) to[blockIdx.x] = total;
}

TEST(Model, SumsByShufflesAndSharedMemory) {
    std::vector<int> from(512), to(2);
    for (int i = 0; i < 512; ++i) from[size_t(i)] = i;
    EXPECT_EQ(
        fault_of(sum_kernel, dim3(2), dim3(256), static_cast<const int*>(from.data()), to.data()),
        "");
    EXPECT_EQ(to[0], 255 * 256 / 2);
    EXPECT_EQ(to[1], 255 * 256 / 2 + 256 * 256);
}

__global__ void vote_kernel(unsigned* out) {
    const int lane = int(threadIdx.x);
    const unsigned odd = __ballot_sync(~0u, lane % 2 == 1);
    const bool all = __all_sync(~0u, lane < 32), any = __any_sync(~0u, lane > 31);
    const int fifth = __shfl_sync(~0u, lane * lane, 5), near = __shfl_xor_sync(~0u, lane, 3, 16);
    if (lane == 17) out[0] = odd, out[1] = all, out[2] = any, out[3] = unsigned(fifth);
    if (lane == 18) out[4] = unsigned(near);
}

TEST(Model, VotesAndShuffles) {
    std::vector<unsigned> out(5);
    EXPECT_EQ(fault_of(vote_kernel, dim3(1), dim3(32), out.data()), "");
    EXPECT_EQ(out, (std::vector<unsigned>{0xaaaaaaaau, 1, 0, 25, 17}));
}

__global__ void tile_kernel(const int8_t* a, const int8_t* b, int* c) {
    const int lane = int(threadIdx.x), g = lane / 4, t = lane % 4;
    const auto word = [](const int8_t* row, int index) {
        uint32_t bits;
        std::memcpy(&bits, row + 4 * index, 4);
        return bits;
    };
    int sums[4] = {1, 1, 1, 1};
    aerie::cuda::mma_s8(sums,
                        make_uint4(word(a + g * 32, t), word(a + (g + 8) * 32, t),
                                   word(a + g * 32, t + 4), word(a + (g + 8) * 32, t + 4)),
                        make_uint2(word(b + g * 32, t), word(b + g * 32, t + 4)));
    for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = sums[i];
}

TEST(Model, MultipliesTiles) {
    std::vector<int8_t> a(16 * 32), b(8 * 32);  // b by columns
    for (size_t i = 0; i < a.size(); ++i) a[i] = int8_t(i * 37 % 255 - 127);
    for (size_t i = 0; i < b.size(); ++i) b[i] = int8_t(i * 91 % 255 - 127);
    std::vector<int> c(16 * 8);
    EXPECT_EQ(fault_of(tile_kernel, dim3(1), dim3(32), static_cast<const int8_t*>(a.data()),
                       static_cast<const int8_t*>(b.data()), c.data()),
              "");
    for (size_t row = 0; row < 16; ++row)
        for (size_t column = 0; column < 8; ++column) {
            int want = 1;
            for (size_t k = 0; k < 32; ++k) want += a[row * 32 + k] * b[column * 32 + k];
            EXPECT_EQ(c[row * 8 + column], want) << row << " " << column;
        }
}

// The planted mistakes.

__global__ void some_skip_the_barrier() {
    if (threadIdx.x < 40) __syncthreads();
}
__global__ void two_barriers_for_one() {
    if (threadIdx.x < 40)
        __syncthreads();
    else
        __syncthreads();
}
__global__ void lanes_part() {
    if (threadIdx.x % 32 < 7) __shfl_xor_sync(~0u, 1, 1);
}
__global__ void lanes_meet_elsewhere() {
    if (threadIdx.x % 32 < 7)
        __shfl_xor_sync(~0u, 1, 1);
    else
        __shfl_xor_sync(~0u, 1, 1);
}

// clang-format off
__global__ void two_barriers_on_a_line() { if (threadIdx.x < 40) __syncthreads(); else __syncthreads(); }
// clang-format on

TEST(Model, FindsBarriersThatNotAllReach) {
    EXPECT_TRUE(has(fault_of(two_barriers_on_a_line, dim3(1), dim3(64)), "other threads are at"));
    EXPECT_TRUE(has(fault_of(some_skip_the_barrier, dim3(1), dim3(64)), "waits for ever"));
    EXPECT_TRUE(has(fault_of(two_barriers_for_one, dim3(1), dim3(64)), "other threads are at"));
    EXPECT_TRUE(has(fault_of(lanes_part, dim3(1), dim3(64)), "waits for ever"));
    EXPECT_TRUE(has(fault_of(lanes_meet_elsewhere, dim3(1), dim3(64)), "lanes meet at"));
}

__global__ void reads_what_nothing_wrote(int* out) {
    __shared__ SharedArray<int, 64> space;
    // The first block writes all of it, the second one trusts that it is still there.
    if (blockIdx.x == 0) space[int(threadIdx.x)] = 1;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = space[5];
}

TEST(Model, FindsSharedMemoryThatNothingWrote) {
    std::vector<int> out(2);
    EXPECT_EQ(fault_of(reads_what_nothing_wrote, dim3(1), dim3(64), out.data()), "");
    EXPECT_TRUE(
        has(fault_of(reads_what_nothing_wrote, dim3(2), dim3(64), out.data()), "nothing wrote"));
}

__global__ void reads_without_barrier(int* out) {
    __shared__ SharedArray<int, 64> space;
    space[int(threadIdx.x)] = int(threadIdx.x);
    out[threadIdx.x] = space[int(threadIdx.x ^ 1)];
}
__global__ void warp_barrier_is_too_little(int* out) {
    __shared__ SharedArray<int, 64> space;
    space[int(threadIdx.x)] = int(threadIdx.x);
    __syncwarp();
    out[threadIdx.x] = space[int(threadIdx.x ^ 32)];
}
__global__ void warp_barrier_is_enough(int* out) {
    __shared__ SharedArray<int, 64> space;
    space[int(threadIdx.x)] = int(threadIdx.x);
    __syncwarp();
    out[threadIdx.x] = space[int(threadIdx.x ^ 1)];
}
__global__ void one_reads_another_writes(int* out) {
    __shared__ SharedArray<int, 64> space;
    space[int(threadIdx.x)] = 1;
    __syncthreads();
    if (threadIdx.x == 1) out[0] = space[5];
    if (threadIdx.x == 40) space[5] = 2;
}
__global__ void all_write_one() {
    __shared__ SharedArray<int, 1> space;
    space[0] = int(threadIdx.x);
}

TEST(Model, FindsMissingBarriers) {
    std::vector<int> out(64);
    EXPECT_NE(fault_of(reads_without_barrier, dim3(2), dim3(64), out.data()), "");
    EXPECT_NE(fault_of(warp_barrier_is_too_little, dim3(2), dim3(64), out.data()), "");
    EXPECT_EQ(fault_of(warp_barrier_is_enough, dim3(2), dim3(64), out.data()), "");
    std::string faults;  // blocks run forwards and backwards in turn
    for (int i = 0; i < 2; ++i)
        faults += fault_of(one_reads_another_writes, dim3(1), dim3(64), out.data());
    EXPECT_TRUE(has(faults, "another thread reads")) << faults;
    EXPECT_TRUE(has(faults, "reads shared memory that")) << faults;
    EXPECT_TRUE(has(fault_of(all_write_one, dim3(1), dim3(64)), "writes shared memory"));
}

__global__ void beyond_the_array(int index) {
    __shared__ SharedArray<int, 64> space;
    space[index] = 1;
}

TEST(Model, FindsWhatLiesBeyondASharedArray) {
    EXPECT_EQ(fault_of(beyond_the_array, dim3(1), dim3(32), 0).find("element"), std::string::npos);
    EXPECT_TRUE(has(fault_of(beyond_the_array, dim3(1), dim3(32), 64), "element 64"));
    EXPECT_TRUE(has(fault_of(beyond_the_array, dim3(1), dim3(32), -1), "element -1"));
}

__global__ void copies(const uint4* from, unsigned* out, bool wait) {
    __shared__ SharedArray<uint4, 32> space;
    const int lane = int(threadIdx.x);
    space[lane] = make_uint4(9, 9, 9, 9);
    aerie::cuda::copy_async(space, lane, from + lane);
    aerie::cuda::commit_copies();
    if (wait) aerie::cuda::wait_for_copies<0>();
    const uint4 word = space[lane];
    out[lane] = word.y;
}

TEST(Model, FindsCopiesThatNobodyWaitedFor) {
    std::vector<uint4> from(32);
    for (unsigned i = 0; i < 32; ++i) from[i].y = 3 * i;
    std::vector<unsigned> out(32);
    EXPECT_EQ(fault_of(copies, dim3(1), dim3(32), static_cast<const uint4*>(from.data()),
                       out.data(), true),
              "");
    for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(out[i], 3 * i);
    EXPECT_TRUE(has(fault_of(copies, dim3(1), dim3(32), static_cast<const uint4*>(from.data()),
                             out.data(), false),
                    "nothing wrote"));
}

// Only a GPU's own work may touch its memory, and not beyond its end.
TEST(Model, DeviceMemoryEndsWhereItEnds) {
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 64 * sizeof(int)), cudaSuccess);
    int* hits = static_cast<int*>(memory);
    EXPECT_DEATH(++hits[0], "");
    {
        const OnGpu open(0);
        EXPECT_EQ(fault_of(count_threads, dim3(1), dim3(64), hits), "");
        EXPECT_DEATH(fault_of(count_threads, dim3(2), dim3(64), hits), "");
    }
    EXPECT_DEATH(++hits[0], "");
    cudaFree(memory);
}

// A copy happens when somebody waits for it, and between the right sides only.
TEST(Model, CopiesComeLate) {
    cudaStream_t stream;
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, 0), cudaSuccess);
    int given = 1, taken = 0;
    EXPECT_EQ(cudaMemcpyAsync(memory, &given, sizeof(int), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    given = 2;
    EXPECT_EQ(cudaMemcpyAsync(&taken, memory, sizeof(int), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    EXPECT_EQ(taken, 0);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(taken, 2);
    EXPECT_EQ(cudaMemcpyAsync(&taken, &given, sizeof(int), cudaMemcpyHostToDevice, stream),
              cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpyAsync(memory, memory, sizeof(int), cudaMemcpyDeviceToHost, stream),
              cudaErrorInvalidValue);
    cudaStreamDestroy(stream);
    cudaFree(memory);
}

}  // namespace
}  // namespace simt
