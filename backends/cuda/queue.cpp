// A failure shows at the next read or wait.
#include "cuda/queue.h"

#include <cassert>
#include <utility>

#include "cuda/check.h"
#include "cuda/memory.h"

namespace aerie::cuda {

namespace {

constexpr size_t kMostRecordings = 256;  // beyond it shapes hardly come again

}  // namespace

Queue::Queue(bool profile) : profile_(profile), timer_(make_timer()) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

Queue::~Queue() {
    forget_recordings();
    (void)cudaStreamDestroy(stream_);
}

Queue::Recording::~Recording() {
    if (graph) (void)cudaGraphExecDestroy(graph);
}

std::unique_ptr<Timer> Queue::make_timer() const {
    return profile_ ? std::make_unique<Timer>() : nullptr;
}

void Queue::before_kernel(const char* op) {
    ++(recording_ ? recording_->kernels : counts_.dispatches);
    if (!recording_) ++counts_.submissions;
    if (timer()) timer()->start(stream_, op, recording_);
}

void Queue::after_kernel() {
    if (!timer()) return;
    timer()->stop(stream_, recording_);
    if (recording_ || !timer_->full()) return;
    timer_->add_to(times_);
    timer_->reset();
}

void Queue::replay(uint64_t key, const std::function<void()>& make) {
    assert(!recording_);
    if (recordings_.size() == kMostRecordings && !recordings_.count(key)) forget_recordings();
    std::unique_ptr<Recording>& recording = recordings_[key];
    if (!recording) recording = record(make);
    CUDA_CHECK(cudaGraphLaunch(recording->graph, stream_));
    counts_.dispatches += recording->kernels;
    ++counts_.submissions;
    if (recording->timer) recording->timer->add_to(times_);  // its events are of one run
}

std::unique_ptr<Queue::Recording> Queue::record(const std::function<void()>& make) {
    auto recording = std::make_unique<Recording>();
    recording->timer = make_timer();
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    recording_ = recording.get();
    try {
        make();
    } catch (...) {
        recording_ = nullptr;
        if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess) (void)cudaGraphDestroy(graph);
        throw;
    }
    recording_ = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(stream_, &graph));
    const cudaError_t result = cudaGraphInstantiate(&recording->graph, graph, 0);
    (void)cudaGraphDestroy(graph);
    CUDA_CHECK(result);
    return recording;
}

void Queue::read(const Tensor& from, void* to) {
    const size_t width = size_bytes(from.dtype, size_t(from.cols));
    const size_t stride = size_bytes(from.dtype, size_t(from.row_stride));
    CUDA_CHECK(cudaMemcpy2DAsync(to, width, row<std::byte>(from, 0), stride, width,
                                 size_t(from.rows), cudaMemcpyDeviceToHost, stream_));
    counts_.bytes_read += size_t(from.rows) * width;
    wait();
}

void Queue::wait() {
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    CUDA_CHECK(cudaGetLastError());
}

void Queue::forget_recordings() {
    if (recordings_.empty()) return;
    (void)cudaStreamSynchronize(stream_);  // one may be running
    recordings_.clear();
}

std::vector<OpTime> Queue::op_times() {
    if (timer_) {
        timer_->add_to(times_);
        timer_->reset();
    }
    std::vector<OpTime> times;
    for (const auto& [op, time] : times_) times.push_back(time);
    return times;
}

}  // namespace aerie::cuda
