// Streams, graphs and events of the stand-in runtime. A stream does its work as late as it may,
// which is when somebody waits for it. So it shows if a copy reads the host's memory too late.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "simt/machine.h"
#include "simt/stores.h"

namespace simt {

struct Graph {
    std::vector<std::function<void()>> works;
    bool spoiled = false;  // something was called that a capture forbids
};

struct Stream {
    int gpu;
    std::deque<std::function<void()>> works;
    Graph* captured = nullptr;
    std::exception_ptr fault;  // a kernel's; the next wait throws it
};

// An event: when the stream reached it; empty: not yet.
struct Event {
    std::optional<std::chrono::steady_clock::time_point> reached;
    Stream* stream = nullptr;
};

namespace {

std::vector<Stream*>& streams() {
    static std::vector<Stream*> all;
    return all;
}

void run(Stream& stream) {
    if (stream.works.empty()) return;
    const OnGpu open(stream.gpu);
    while (!stream.works.empty()) {
        const std::function<void()> work = std::move(stream.works.front());
        stream.works.pop_front();
        try {
            work();
        } catch (...) {
            if (!stream.fault) stream.fault = std::current_exception();
            stream.works.clear();
        }
    }
}

cudaError_t wait_for(Stream& stream) {
    if (stream.captured) {
        stream.captured->spoiled = true;
        return failed(cudaErrorStreamCaptureUnsupported);
    }
    run(stream);
    if (stream.fault) std::rethrow_exception(std::exchange(stream.fault, nullptr));
    return failed(state_of(stream.gpu));
}

[[noreturn]] void report_forgotten(const std::exception_ptr& fault) {
    try {
        std::rethrow_exception(fault);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "simt: nobody waited for this fault: %s\n", e.what());
    }
    std::abort();
}

bool fits(const void* to, const void* from, cudaMemcpyKind kind) {
    return is_device_memory(to) == (kind != cudaMemcpyDeviceToHost) &&
           is_device_memory(from) == (kind != cudaMemcpyHostToDevice);
}

}  // namespace

int gpu_of(cudaStream_t stream) {
    return stream->gpu;
}

bool captures() {
    for (const Stream* stream : streams())
        if (stream->captured) return true;
    return false;
}

void forbid_in_capture() {
    for (Stream* stream : streams())
        if (stream->captured) stream->captured->spoiled = true;
}

void run_everything(int gpu) {
    for (Stream* stream : streams())
        if (stream->gpu == gpu && !stream->captured) run(*stream);
}

void submit(cudaStream_t stream, std::function<void()> work) {
    if (stream->captured)
        stream->captured->works.push_back(std::move(work));
    else
        stream->works.push_back(std::move(work));
}

}  // namespace simt

using namespace simt;

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
    if (!is_device_memory(memory)) return failed(cudaErrorInvalidValue);
    submit(stream, [=] {
        stores::settle();
        std::memset(memory, value, bytes);
    });
    return failed(state_of(stream->gpu));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_stride, const void* from, size_t from_stride,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
    if (!fits(to, from, kind)) return failed(cudaErrorInvalidValue);
    if (height > 1 && (width > to_stride || width > from_stride))
        return failed(cudaErrorInvalidValue);
    submit(stream, [=] {
        stores::settle();
        for (size_t i = 0; i < height; ++i)
            std::memcpy(static_cast<char*>(to) + i * to_stride,
                        static_cast<const char*>(from) + i * from_stride, width);
    });
    return failed(state_of(stream->gpu));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    *stream = new Stream{current_gpu(), {}, nullptr, nullptr};
    streams().push_back(*stream);
    ++live().streams;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    run(*stream);
    if (stream->fault) report_forgotten(stream->fault);
    std::erase(streams(), stream);
    delete stream;
    --live().streams;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return wait_for(*stream);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return wait_for(*stream);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (stream->captured) return failed(cudaErrorInvalidValue);
    if (state_of(stream->gpu) != cudaSuccess) return failed(state_of(stream->gpu));
    stream->captured = new Graph;
    ++live().graphs;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    if (!stream->captured) return failed(cudaErrorInvalidValue);
    *graph = std::exchange(stream->captured, nullptr);
    if (!(*graph)->spoiled) return cudaSuccess;
    cudaGraphDestroy(std::exchange(*graph, nullptr));
    return failed(cudaErrorStreamCaptureInvalidated);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
    *executable = new Graph(*graph);
    ++live().executables;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    if (stream->gpu != current_gpu()) return failed(cudaErrorInvalidResourceHandle);
    for (const auto& work : executable->works) submit(stream, work);
    return failed(state_of(stream->gpu));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    --live().graphs;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete executable;
    --live().executables;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = new Event;
    ++live().events;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    for (Stream* stream : streams())  // one that is gone has run
        if (stream == event->stream) run(*stream);
    delete event;
    --live().events;
    return cudaSuccess;
}

// Without the flag, an event in a capture is only a mark for other streams.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    if ((flags == cudaEventRecordExternal) != (stream->captured != nullptr))
        return failed(cudaErrorInvalidValue);
    if (stream->gpu != current_gpu()) return failed(cudaErrorInvalidResourceHandle);
    if (state_of(stream->gpu) != cudaSuccess) return failed(state_of(stream->gpu));
    event->stream = stream;
    submit(stream, [event] { event->reached = std::chrono::steady_clock::now(); });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return event->stream ? wait_for(*event->stream) : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    if (!begin->reached || !end->reached) return failed(cudaErrorNotReady);
    *milliseconds =
        std::chrono::duration<float, std::milli>(*end->reached - *begin->reached).count();
    return cudaSuccess;
}
