// The stand-in runtime: device memory is the host's, so that AddressSanitizer watches it.
#include <cuda_runtime.h>

#include <cstdlib>
#include <utility>
#include <vector>

namespace simt {

struct Graph {
    std::vector<std::function<void()>> works;
};

struct Stream {
    Graph* captured = nullptr;
};

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
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return stream->captured ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (stream->captured) return cudaErrorInvalidValue;
    stream->captured = new simt::Graph;
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
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    for (const auto& work : executable->works) simt::submit(stream, work);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete executable;
    return cudaSuccess;
}
