// Times kernels by events around them: the kernels of one recording, or kernels that are launched
// one by one.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie::cuda {

using OpTimes = std::map<std::string, OpTime>;

class Timer {
  public:
    Timer() = default;
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    // Called before and after a kernel. `captured`: the stream is captured into a graph.
    cudaError_t start(cudaStream_t stream, const char* op, bool captured);
    cudaError_t stop(cudaStream_t stream, bool captured) const;

    bool full() const { return used_ == kMaxSpans; }
    // Waits until all kernels have run, and adds their times.
    cudaError_t add_to(OpTimes& times) const;
    void reset() { used_ = 0; }

  private:
    struct Span {
        const char* op = "";
        cudaEvent_t begin = nullptr, end = nullptr;
    };
    static constexpr size_t kMaxSpans = 1024;

    std::vector<Span> spans_;
    size_t used_ = 0;
};

}  // namespace aerie::cuda
