// The stand-in runtime: device memory is the host's, so that AddressSanitizer watches it.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace simt {

struct Graph {
    std::vector<std::function<void()>> works;
};

struct Stream {
    Graph* captured = nullptr;
};

// When the stream came by; empty: not yet.
struct Event {
    std::optional<std::chrono::steady_clock::time_point> reached;
};

namespace {
Live alive;
}

Live live() {
    return alive;
}

void submit(cudaStream_t stream, std::function<void()> work) {
    if (stream->captured)
        stream->captured->works.push_back(std::move(work));
    else
        work();
}

}  // namespace simt

const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorNoDevice:
            return "no CUDA-capable device is detected";
        case cudaErrorInvalidValue:
            return "invalid argument";
        case cudaErrorNotReady:
            return "device not ready";
        default:
            return "no error";
    }
}

cudaError_t cudaGetLastError() {
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    *properties = {};
    std::strcpy(properties->name, "execution model");
    properties->totalGlobalMem = size_t(4) << 30;
    properties->major = 9;
    properties->multiProcessorCount = 2;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    // Not zeroed, as on a device.
    *memory = bytes <= properties.totalGlobalMem
                  ? std::aligned_alloc(256, (bytes + 255) & ~size_t(255))
                  : nullptr;
    if (*memory) std::memset(*memory, 0xa5, bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void* memory) {
    std::free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
    simt::submit(stream, [=] { std::memset(memory, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_stride, const void* from, size_t from_stride,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
    if (height > 1 && (width > to_stride || width > from_stride)) return cudaErrorInvalidValue;
    simt::submit(stream, [=] {
        for (size_t i = 0; i < height; ++i)
            std::memcpy(static_cast<char*>(to) + i * to_stride,
                        static_cast<const char*>(from) + i * from_stride, width);
    });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    *stream = new simt::Stream;
    ++simt::alive.streams;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    --simt::alive.streams;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return stream->captured ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (stream->captured) return cudaErrorInvalidValue;
    stream->captured = new simt::Graph;
    ++simt::alive.graphs;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    if (!stream->captured) return cudaErrorInvalidValue;
    *graph = std::exchange(stream->captured, nullptr);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
    *executable = new simt::Graph(*graph);
    ++simt::alive.executables;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    for (const auto& work : executable->works) simt::submit(stream, work);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    --simt::alive.graphs;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete executable;
    --simt::alive.executables;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = new simt::Event;
    ++simt::alive.events;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    --simt::alive.events;
    return cudaSuccess;
}

// An event that a capture takes without the flag is a mark for other streams only.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    if ((flags == cudaEventRecordExternal) != (stream->captured != nullptr))
        return cudaErrorInvalidValue;
    simt::submit(stream, [event] { event->reached = std::chrono::steady_clock::now(); });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    if (!begin->reached || !end->reached) return cudaErrorNotReady;
    *milliseconds =
        std::chrono::duration<float, std::milli>(*end->reached - *begin->reached).count();
    return cudaSuccess;
}
