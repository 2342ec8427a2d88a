// The in-order queue of a device: a stream, passes that are recorded on it as graphs, the host's
// writes, and counts of what it was given. Each call makes the device the calling thread's current
// one, and leaves it so.
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
    // Whether the next kernel may begin while the one before it runs. Not while kernels are timed,
    // and never for the first kernel of a recording, since its graph has none before it.
    bool starts_beside() const {
        return starts_beside_ && !profile_ && !(recording_ && recording_->kernels == 0);
    }
    void let_kernels_start_beside() { starts_beside_ = true; }
    // Whether the queue is asked this for the first time about a kernel. Attributes for all
    // launches of the kernel are set then.
    bool is_new(const void* kernel) { return kernels_.insert(kernel).second; }

    // start() launches a kernel on the stream. If it fails, nothing more is launched until a read,
    // a wait or a replay has thrown an Error that names this op.
    template <class Start>
    void launch(const char* op, const Start& start) {
        if (!before_kernel(op)) return;
        note(start(), op);
        after_kernel(op);
    }
    // Fails in the same way, for an op that cannot be done at all.
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
    // Called before memory is freed, since graphs hold addresses. Destroys the recordings that were
    // made after the first `before`, once none of them runs any more.
    void forget_recordings(long before);

    CommandCounts counts() const { return counts_; }
    std::vector<OpTime> op_times();  // waits

  private:
    struct Recording {
        cudaGraphExec_t graph = nullptr;
        long number = 0;  // recorded() when it was made
        long kernels = 0;
        std::unique_ptr<Timer> timer;  // if the device is profiled
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
    std::byte* staging_ = nullptr;      // pinned: copies from it happen when the stream gets there
    size_t staged_ = 0;                 // bytes of it in use since the last wait
    std::unique_ptr<Mailbox> mailbox_;  // behind the staging memory
    std::unique_ptr<Timer> timer_;      // for kernels outside of recordings
    std::unordered_map<uint64_t, std::unique_ptr<Recording>> recordings_;  // null: run once
    // Kernels that were launched.
    std::unordered_set<const void*> kernels_;
    Recording* recording_ = nullptr;  // the one that is being captured
    long recorded_ = 0;
    std::string failure_;             // the first one that was not reported
    const char* first_op_ = nullptr;  // the first op since the last wait
    CommandCounts counts_;
    OpTimes times_;
};

}  // namespace aerie::cuda
