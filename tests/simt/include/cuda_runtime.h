// Stands in for CUDA's header where kernels are compiled for the execution model: its keywords,
// built-in variables and functions, and the few calls of the runtime that the backend makes.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simt/model.h"
#include "simt/stores.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__

struct dim3 : simt::Index {
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : Index{x, y, z} {}
};
extern simt::Index threadIdx, blockIdx, blockDim, gridDim;

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}
inline float2 make_float2(float x, float y) {
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}

using std::isfinite;
using std::isnan;
using std::max;
using std::min;

inline float __fmaf_rn(float a, float b, float c) {
    return std::fma(a, b, c);
}
inline float __uint_as_float(unsigned bits) {
    return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {
    return std::bit_cast<unsigned>(value);
}
// Four of the eight bytes of a and b, chosen by the hexadecimal digits of `which`.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    unsigned chosen = 0;
    for (int i = 0; i < 4; ++i)
        chosen |= unsigned(bytes >> (which >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
    return chosen;
}
// c plus the products of two signed halves with the two lower bytes, which are signed.
inline int __dp2a_lo(int halves, int bytes, int c) {
    return c + int16_t(halves) * int8_t(bytes) + (halves >> 16) * int8_t(bytes >> 8);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return unsigned(uint64_t(a) * b >> 32);
}
inline int __clz(int bits) {
    return std::countl_zero(unsigned(bits));
}
inline int __popc(unsigned bits) {
    return std::popcount(bits);
}
inline float __double2float_ru(double value) {
    const float nearest = float(value);
    return double(nearest) < value ? std::nextafter(nearest, HUGE_VALF) : nearest;
}
template <class T>
T __ldg(const T* from) {
    simt::check_alignment(from, alignof(T));
    return *from;
}

inline void __threadfence() {
    simt::fence();
}
inline void __threadfence_system() {
    simt::fence();
}
// Returns the old value. For integers only: a sum of floats would depend on the order of threads.
template <class T, class Work>
T change_atomically(T* at, const Work& work) {
    static_assert(std::is_integral_v<T>);
    const T old = *at;
    simt::stores::change(at, sizeof(T), [&] { *at = work(old); });
    return old;
}
template <class T>
T atomicAdd(T* at, T value) {
    return change_atomically(at, [&](T old) { return T(old + value); });
}
template <class T>
T atomicMax(T* at, T value) {
    return change_atomically(at, [&](T old) { return std::max(old, value); });
}
template <class T>
T atomicExch(T* at, T value) {
    return change_atomically(at, [&](T) { return value; });
}
// Adds one; `last` is followed by 0.
inline unsigned atomicInc(unsigned* at, unsigned last) {
    return change_atomically(at, [&](unsigned old) { return old >= last ? 0 : old + 1; });
}

inline void __syncthreads(simt::Site site = simt::Site::current()) {
    simt::barrier(site);
}
inline void __syncwarp(unsigned mask = ~0u, simt::Site site = simt::Site::current()) {
    if (mask != ~0u) simt::fault("__syncwarp of a part of the warp is not modelled");
    simt::warp_barrier(site);
}

namespace simt {

// Every lane gives a value and takes that of another.
template <class T>
T exchange(unsigned mask, T value, int from, Site site) {
    if (mask != ~0u) fault("a shuffle of a part of the warp is not modelled");
    struct Item {
        T given, taken;
        int from;
    } item{value, value, from};
    meet(
        item,
        [](void* const* items) {
            for (int lane = 0; lane < kWarp; ++lane) {
                Item& mine = *static_cast<Item*>(items[lane]);
                mine.taken = static_cast<const Item*>(items[mine.from])->given;
            }
        },
        site);
    return item.taken;
}

// A bit for every lane, set if its value is true.
inline unsigned vote(unsigned mask, bool value, Site site) {
    if (mask != ~0u) fault("a vote of a part of the warp is not modelled");
    struct Item {
        unsigned bits;
    } item{value};
    meet(
        item,
        [](void* const* items) {
            unsigned bits = 0;
            for (int lane = 0; lane < kWarp; ++lane)
                bits |= static_cast<const Item*>(items[lane])->bits << lane;
            for (int lane = 0; lane < kWarp; ++lane) static_cast<Item*>(items[lane])->bits = bits;
        },
        site);
    return item.bits;
}

}  // namespace simt

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              simt::Site site = simt::Site::current()) {
    const int base = simt::current()->lane() / width * width;
    return simt::exchange(mask, value, base + lane % width, site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32,
                  simt::Site site = simt::Site::current()) {
    const int lane = simt::current()->lane(), other = lane ^ distance;
    return simt::exchange(mask, value, other / width == lane / width ? other : lane, site);
}
inline unsigned __ballot_sync(unsigned mask, bool value, simt::Site site = simt::Site::current()) {
    return simt::vote(mask, value, site);
}
inline bool __all_sync(unsigned mask, bool value, simt::Site site = simt::Site::current()) {
    return simt::vote(mask, value, site) == ~0u;
}
inline bool __any_sync(unsigned mask, bool value, simt::Site site = simt::Site::current()) {
    return simt::vote(mask, value, site) != 0;
}

// The runtime. Streams do their work when somebody waits for it, or keep it while a graph is
// captured.
enum cudaError_t {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorInvalidConfiguration,
    cudaErrorNoDevice,
    cudaErrorInsufficientDriver,
    cudaErrorSystemNotReady,
    cudaErrorInvalidDevice,
    cudaErrorNoKernelImageForDevice,
    cudaErrorInvalidResourceHandle,
    cudaErrorNotReady,
    cudaErrorIllegalAddress,
    cudaErrorStreamCaptureUnsupported,
    cudaErrorStreamCaptureInvalidated
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
constexpr unsigned cudaStreamNonBlocking = 1, cudaHostAllocMapped = 2;
constexpr unsigned cudaEventRecordDefault = 0, cudaEventRecordExternal = 1;
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlockOptin;
    int major, minor, multiProcessorCount, integrated;
};
struct cudaFuncAttributes {
    int ptxVersion;
};
namespace simt {
struct Stream;
struct Graph;
struct Event;
}  // namespace simt
using cudaStream_t = simt::Stream*;
namespace simt {
// Keeps the work for the stream's next wait, or for the graph that it captures.
void submit(cudaStream_t stream, std::function<void()> work);
// The same for a kernel, which may fail at once or when it runs.
cudaError_t launch(const void* kernel, dim3 grid, dim3 block, cudaStream_t stream,
                   std::function<void()> work);
cudaError_t attributes_of(const void* kernel);
int gpu_of(cudaStream_t stream);
bool is_device_memory(const void* memory);
}  // namespace simt
using cudaGraph_t = simt::Graph*;
using cudaGraphExec_t = simt::Graph*;
using cudaEvent_t = simt::Event*;

#define CUDART_VERSION 13000
cudaError_t cudaDriverGetVersion(int* version);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaHostGetDevicePointer(void** mapped, void* memory, unsigned flags);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_stride, const void* from, size_t from_stride,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);  // does all work, then answers
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
    attributes->ptxVersion = 90;
    return simt::attributes_of(reinterpret_cast<const void*>(kernel));
}
