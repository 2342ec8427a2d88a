// The in-order queue of a device: a stream, passes recorded on it as graphs, what the host writes
// through it, and the account of what it was given. Each call makes the device that of the calling
// thread, and leaves it so.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cuda/mailbox.h"
#include "cuda/timer.h"

namespace aerie::cuda {

class Queue {
  public:
    Queue(int device, bool profile);  // throws Error
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    int device() const { return device_; }
    void make_current() const;  // throws Error
    cudaStream_t stream() const { return stream_; }
    // Whether the next kernel may begin while the one before it runs; not where kernels are timed,
    // and never the first of a recording, before which its graph has none.
    bool starts_beside() const {
        return starts_beside_ && !profile_ && !(recording_ && recording_->kernels == 0);
    }
    void let_kernels_start_beside() { starts_beside_ = true; }
    // Whether nobody asked this of the kernel before: what holds for all its launches is set then.
    bool is_new(const void* kernel) { return kernels_.insert(kernel).second; }

    // start() launches a kernel on the stream. Where it cannot, nothing more is launched until a
    // read, a wait or a replay has thrown an Error that names this op.
    template <class Start>
    void launch(const char* op, const Start& start) {
        if (!before_kernel(op)) return;
        note(start(), op);
        after_kernel(op);
    }
    // The same for an op that cannot be done at all.
    void refuse(const char* op, const std::string& why);

    // The first call with a key runs `make`, the second captures what it enqueues. Throws Error.
    void replay(uint64_t key, const std::function<void()>& make);
    void write(const Tensor& to, const void* from);                   // `from` is reusable at once
    void upload(std::byte* to, const void* from, size_t size_bytes);  // `from` lives until a wait
    void fill(std::byte* to, int value, size_t size_bytes);
    void read(const Tensor& from, void* to);  // waits
    void wait();
    double seconds_of(const std::function<void()>& work);  // by the device's clock; waits

    long recorded() const { return recorded_; }  // how many recordings were ever made
    // Some memory is about to go, and graphs hold addresses: those that were made after the first
    // `before` go, and afterwards nothing uses any of it.
    void forget_recordings(long before);

    CommandCounts counts() const { return counts_; }
    std::vector<OpTime> op_times();  // waits

  private:
    struct Recording {
        cudaGraphExec_t graph = nullptr;
        long number = 0;  // recorded()
        long kernels = 0;
        std::unique_ptr<Timer> timer;  // where the device is profiled
        ~Recording();
    };

    std::unique_ptr<Timer> make_timer() const;
    Timer* timer() const { return recording_ ? recording_->timer.get() : timer_.get(); }
    bool before_kernel(const char* op);
    void after_kernel(const char* op);
    void note(cudaError_t result, const char* op);
    void check(cudaError_t result, const char* what) const;
    void throw_failure();
    std::unique_ptr<Recording> record(const std::function<void()>& make);
    void arrived();
    void write_bytes(std::byte* to, const std::byte* from, size_t size_bytes);

    int device_;
    bool profile_, starts_beside_ = false;
    cudaStream_t stream_ = nullptr;
    std::byte* staging_ = nullptr;  // pinned: copies from it are taken when the stream gets there
    size_t staged_ = 0;             // bytes of it in use since the last wait
    std::unique_ptr<Mailbox> mailbox_;  // behind them
    std::unique_ptr<Timer> timer_;      // of kernels that are not recorded
    std::unordered_map<uint64_t, std::unique_ptr<Recording>> recordings_;  // null: met once
    std::unordered_set<const void*> kernels_;                              // that were launched
    Recording* recording_ = nullptr;  // that the stream is captured for
    long recorded_ = 0;
    std::string failure_;             // the first one that nobody was told of
    const char* first_op_ = nullptr;  // since the last wait
    CommandCounts counts_;
    OpTimes times_;
};

}  // namespace aerie::cuda
