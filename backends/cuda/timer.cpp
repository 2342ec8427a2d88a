// In a graph the events are nodes of it, so that a replay tells times too. Around single kernels
// they also see what the host took to launch one, where the device had to wait for that.
#include "cuda/timer.h"

#include "cuda/check.h"

namespace aerie::cuda {

Timer::~Timer() {
    for (const Span& span : spans_) {
        (void)cudaEventDestroy(span.begin);
        (void)cudaEventDestroy(span.end);
    }
}

void Timer::start(cudaStream_t stream, const char* op, bool captured) {
    if (used_ == spans_.size()) {
        Span span = {};
        CUDA_CHECK(cudaEventCreate(&span.begin));
        spans_.push_back(span);
        CUDA_CHECK(cudaEventCreate(&spans_.back().end));
    }
    spans_[used_].op = op;
    CUDA_CHECK(
        cudaEventRecordWithFlags(spans_[used_++].begin, stream,
                                 captured ? cudaEventRecordExternal : cudaEventRecordDefault));
}

void Timer::stop(cudaStream_t stream, bool captured) const {
    CUDA_CHECK(
        cudaEventRecordWithFlags(spans_[used_ - 1].end, stream,
                                 captured ? cudaEventRecordExternal : cudaEventRecordDefault));
}

void Timer::add_to(OpTimes& times) const {
    for (size_t i = 0; i < used_; ++i) {
        const Span& span = spans_[i];
        float milliseconds = 0;
        CUDA_CHECK(cudaEventSynchronize(span.end));
        CUDA_CHECK(cudaEventElapsedTime(&milliseconds, span.begin, span.end));
        OpTime& time = times[span.op];
        time.op = span.op;
        ++time.count;
        time.seconds += double(milliseconds) / 1000;
    }
}

}  // namespace aerie::cuda
