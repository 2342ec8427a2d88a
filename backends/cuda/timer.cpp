// In a graph the events are nodes, so that replays are timed, too. Around single kernels the times
// include what the host took to launch one, if the device had to wait for that.
#include "cuda/timer.h"

namespace aerie::cuda {

namespace {

cudaError_t record(cudaEvent_t event, cudaStream_t stream, bool captured) {
    return cudaEventRecordWithFlags(event, stream,
                                    captured ? cudaEventRecordExternal : cudaEventRecordDefault);
}

cudaError_t seconds_between(double& seconds, cudaEvent_t begin, cudaEvent_t end) {
    float milliseconds = 0;
    cudaError_t result = cudaEventSynchronize(end);
    if (result == cudaSuccess) result = cudaEventElapsedTime(&milliseconds, begin, end);
    seconds = double(milliseconds) / 1000;
    return result;
}

}  // namespace

Timer::~Timer() {
    for (const Span& span : spans_) {
        if (span.begin) (void)cudaEventDestroy(span.begin);
        if (span.end) (void)cudaEventDestroy(span.end);
    }
}

cudaError_t Timer::start(cudaStream_t stream, const char* op, bool captured) {
    if (used_ == spans_.size()) spans_.emplace_back();
    Span& span = spans_[used_];
    cudaError_t result = cudaSuccess;
    if (!span.begin) result = cudaEventCreate(&span.begin);
    if (!span.end && result == cudaSuccess) result = cudaEventCreate(&span.end);
    if (result == cudaSuccess) result = record(span.begin, stream, captured);
    if (result != cudaSuccess) return result;
    span.op = op;
    ++used_;
    return cudaSuccess;
}

cudaError_t Timer::stop(cudaStream_t stream, bool captured) const {
    return record(spans_[used_ - 1].end, stream, captured);
}

cudaError_t Timer::add_to(OpTimes& times) const {
    for (size_t i = 0; i < used_; ++i) {
        const Span& span = spans_[i];
        double seconds = 0;
        const cudaError_t result = seconds_between(seconds, span.begin, span.end);
        if (result != cudaSuccess) return result;
        OpTime& time = times[span.op];
        time.op = span.op;
        ++time.count;
        time.seconds += seconds;
    }
    return cudaSuccess;
}

}  // namespace aerie::cuda
