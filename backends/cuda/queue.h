// The in-order queue of a device: a stream, passes recorded on it as graphs, and the account of
// what it was given.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cuda/timer.h"

namespace aerie::cuda {

class Queue {
  public:
    explicit Queue(bool profile);  // of the current device; throws Error
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    cudaStream_t stream() const { return stream_; }

    // start() launches a kernel on the stream.
    template <class Start>
    void launch(const char* op, const Start& start) {
        before_kernel(op);
        start();
        after_kernel();
    }
    // The first call with a key captures what `record` enqueues. Throws Error.
    void replay(uint64_t key, const std::function<void()>& record);
    void read(const Tensor& from, void* to);  // waits
    void wait();

    // Some memory is about to go, and graphs hold addresses: afterwards nothing uses any of it.
    void forget_recordings();

    CommandCounts counts() const { return counts_; }
    std::vector<OpTime> op_times();  // waits

  private:
    struct Recording {
        cudaGraphExec_t graph = nullptr;
        long kernels = 0;
        std::unique_ptr<Timer> timer;  // where the device is profiled
        ~Recording();
    };

    std::unique_ptr<Timer> make_timer() const;
    Timer* timer() const { return recording_ ? recording_->timer.get() : timer_.get(); }
    void before_kernel(const char* op);
    void after_kernel();
    std::unique_ptr<Recording> record(const std::function<void()>& make);

    bool profile_;
    cudaStream_t stream_ = nullptr;
    std::unique_ptr<Timer> timer_;  // of kernels that are not recorded
    std::unordered_map<uint64_t, std::unique_ptr<Recording>> recordings_;
    Recording* recording_ = nullptr;  // that the stream is captured for
    CommandCounts counts_;
    OpTimes times_;
};

}  // namespace aerie::cuda
