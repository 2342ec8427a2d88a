// Launches never throw: a failure is reported by the next read, wait or replay.
#include "cuda/queue.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <utility>

#include "cuda/check.h"
#include "cuda/memory.h"

namespace aerie::cuda {

namespace {

constexpr size_t kMaxRecordings = 256;  // with more, shapes hardly come again
constexpr size_t kStagingBytes = size_t(256) << 10;

}  // namespace

Queue::Queue(int device, bool profile) : device_(device), profile_(profile), timer_(make_timer()) {
    make_current();
    void* staging = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    const cudaError_t result =
        cudaHostAlloc(&staging, kStagingBytes + Mailbox::kBytes, cudaHostAllocMapped);
    if (result != cudaSuccess) (void)cudaStreamDestroy(stream_);
    CUDA_CHECK(result);
    staging_ = static_cast<std::byte*>(staging);
    mailbox_ = std::make_unique<Mailbox>(staging_ + kStagingBytes);
}

Queue::~Queue() {
    (void)cudaSetDevice(device_);
    forget_recordings(0);
    (void)cudaStreamSynchronize(stream_);  // copies may be under way
    (void)cudaFreeHost(staging_);
    (void)cudaStreamDestroy(stream_);
}

Queue::Recording::~Recording() {
    if (graph) (void)cudaGraphExecDestroy(graph);
}

void Queue::make_current() const {
    CUDA_CHECK(cudaSetDevice(device_));
}

std::unique_ptr<Timer> Queue::make_timer() const {
    return profile_ ? std::make_unique<Timer>() : nullptr;
}

bool Queue::before_kernel(const char* op) {
    if (!failure_.empty()) return false;
    if (!first_op_) first_op_ = op;
    if (!recording_) note(cudaSetDevice(device_), op);
    if (timer()) note(timer()->start(stream_, op, recording_), op);
    if (!failure_.empty()) return false;
    ++(recording_ ? recording_->kernels : counts_.dispatches);
    if (!recording_) ++counts_.submissions;
    return true;
}

void Queue::after_kernel(const char* op) {
    if (!timer() || !failure_.empty()) return;
    note(timer()->stop(stream_, recording_), op);
    if (recording_ || !timer_->full()) return;
    note(timer_->add_to(times_), op);
    timer_->reset();
}

void Queue::note(cudaError_t result, const char* op) {
    if (result == cudaSuccess) return;
    (void)cudaGetLastError();  // we report it, so no later call may
    refuse(op, cudaGetErrorString(result));
}

void Queue::refuse(const char* op, const std::string& why) {
    if (failure_.empty()) failure_ = std::string("cuda: ") + op + ": " + why;
}

void Queue::throw_failure() {
    if (!failure_.empty()) throw Error(std::exchange(failure_, {}), Cause::device_failed);
}

// A fault of a kernel shows at some later call, so the message says since when to look for it.
void Queue::check(cudaError_t result, const char* what) const {
    if (result == cudaSuccess) return;
    if (!failure_.empty()) throw Error(failure_, Cause::device_failed);
    const std::string since =
        first_op_ ? std::string(" (since the last wait: ") + first_op_ + " and what followed)" : "";
    throw Error(std::string("cuda: ") + what + ": " + cudaGetErrorString(result) + since,
                cause_of(result));
}

// The first run is not captured: a kernel is loaded when it is first launched, which a capture may
// forbid, and many passes never come a second time.
void Queue::replay(uint64_t key, const std::function<void()>& make) {
    assert(!recording_);
    make_current();
    if (recordings_.size() == kMaxRecordings && !recordings_.count(key)) {
        forget_recordings(0);
        recordings_.clear();
    }
    if (recordings_.try_emplace(key).second) return make();
    if (!recordings_[key]) {
        recordings_[key] = record(make);
        ++counts_.recordings;
    }
    const Recording& recording = *recordings_[key];
    throw_failure();
    if (!first_op_) first_op_ = "a recorded pass";
    check(cudaGraphLaunch(recording.graph, stream_), "a recorded pass");
    counts_.dispatches += recording.kernels;
    ++counts_.submissions;
    // The graph's events only hold the times of its newest run.
    if (recording.timer) check(recording.timer->add_to(times_), "times of a recorded pass");
}

std::unique_ptr<Queue::Recording> Queue::record(const std::function<void()>& make) {
    throw_failure();  // an earlier failure would seem to be of this pass
    auto recording = std::make_unique<Recording>();
    recording->timer = make_timer();
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin of a capture");
    recording_ = recording.get();
    std::exception_ptr thrown;
    try {
        make();
    } catch (...) {
        thrown = std::current_exception();
    }
    recording_ = nullptr;
    cudaError_t result = cudaStreamEndCapture(stream_, &graph);
    if (result == cudaSuccess && failure_.empty() && !thrown)
        result = cudaGraphInstantiate(&recording->graph, graph, 0);
    if (graph) (void)cudaGraphDestroy(graph);
    if (result != cudaSuccess) (void)cudaGetLastError();
    if (thrown) failure_.clear();
    if (thrown) std::rethrow_exception(thrown);
    throw_failure();
    check(result, "a capture");
    recording->number = ++recorded_;
    return recording;
}

void Queue::write(const Tensor& to, const void* from) {
    assert(!recording_);
    make_current();
    const std::byte* data = static_cast<const std::byte*>(from);
    const size_t width = size_bytes(to.dtype, size_t(to.cols));
    if (to.cols == to.row_stride)
        return write_bytes(row<std::byte>(to, 0), data, size_t(to.rows) * width);
    for (int r = 0; r < to.rows; ++r)
        write_bytes(row<std::byte>(to, r), data + size_t(r) * width, width);
}

void Queue::write_bytes(std::byte* to, const std::byte* from, size_t size_bytes) {
    while (size_bytes > 0) {
        if (staged_ == kStagingBytes) wait();
        const size_t count = std::min(size_bytes, kStagingBytes - staged_);
        std::memcpy(staging_ + staged_, from, count);
        upload(to, staging_ + staged_, count);
        staged_ += count;
        to += count;
        from += count;
        size_bytes -= count;
    }
}

void Queue::upload(std::byte* to, const void* from, size_t size_bytes) {
    make_current();
    check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyHostToDevice, stream_),
          "copy to the device");
}

void Queue::fill(std::byte* to, int value, size_t size_bytes) {
    make_current();
    check(cudaMemsetAsync(to, value, size_bytes, stream_), "fill of device memory");
}

void Queue::read(const Tensor& from, void* to) {
    make_current();
    throw_failure();
    const size_t width = size_bytes(from.dtype, size_t(from.cols));
    counts_.bytes_read += size_t(from.rows) * width;
    if (!profile_ && mailbox_->takes(from)) {
        mailbox_->send(from, *this);
        mailbox_->has_come(stream_) ? arrived() : wait();
        return mailbox_->take(to, size_t(from.rows) * width);
    }
    const size_t stride = size_bytes(from.dtype, size_t(from.row_stride));
    check(cudaMemcpy2DAsync(to, width, row<std::byte>(from, 0), stride, width, size_t(from.rows),
                            cudaMemcpyDeviceToHost, stream_),
          "copy to the host");
    wait();
}

void Queue::wait() {
    make_current();
    check(cudaStreamSynchronize(stream_), "wait");
    arrived();
}

// Called when the stream has done everything that it was given.
void Queue::arrived() {
    staged_ = 0;
    first_op_ = nullptr;
    throw_failure();
}

double Queue::seconds_of(const std::function<void()>& work) {
    make_current();
    Timer timer;
    OpTimes times;
    check(timer.start(stream_, "work", false), "event");
    work();
    check(timer.stop(stream_, false), "event");
    wait();
    check(timer.add_to(times), "event");
    return times["work"].seconds;
}

void Queue::forget_recordings(long before) {
    const auto goes = [&](const auto& entry) {
        return entry.second && entry.second->number > before;
    };
    if (std::none_of(recordings_.begin(), recordings_.end(), goes)) return;
    (void)cudaSetDevice(device_);
    (void)cudaStreamSynchronize(stream_);  // a graph may be running
    for (auto& entry : recordings_)
        if (goes(entry)) entry.second.reset();
}

std::vector<OpTime> Queue::op_times() {
    if (timer_) {
        make_current();
        check(timer_->add_to(times_), "times of kernels");
        timer_->reset();
    }
    std::vector<OpTime> times;
    for (const auto& [op, time] : times_) times.push_back(time);
    return times;
}

}  // namespace aerie::cuda
