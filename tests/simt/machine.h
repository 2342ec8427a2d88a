// The machine that the stand-in runtime shows: its GPUs, and what goes wrong on them. Tests set it
// up; as it starts it has one GPU on which nothing fails.
#pragma once

#include <cuda_runtime.h>

#include <vector>

namespace simt {

struct Gpu {
    int major = 9, minor = 0;
    bool answers = true;   // else its properties cannot be read
    bool has_code = true;  // of this program
    size_t memory_bytes = size_t(4) << 30;
    int multiprocessors = 2;
    size_t block_bytes = size_t(227) << 10;  // of shared memory, that a block may have
};

// In the place of those there were, with nothing planned to fail. Nothing may be alive on them.
void set_gpus(std::vector<Gpu> gpus);

// Until set_gpus: the driver's version, 0 where there is none, and what it answers when it is asked
// for its GPUs.
void set_driver(int version, cudaError_t result);

// How many kernels were launched to begin while the one before them runs.
long& launched_beside();

// The next launch after `launches` more fails with this error.
void fail_launch(int launches, cudaError_t error);
// The next kernel to run after `kernels` more ends in an illegal address: its GPU is lost.
void fail_run(int kernels);

// What is there and was not given back.
struct Live {
    int streams = 0, graphs = 0, executables = 0, events = 0, buffers = 0, pinned = 0;
};
Live& live();

// For the stand-ins.

int current_gpu();  // of the calling thread
// An error, kept for cudaGetLastError.
cudaError_t failed(cudaError_t error);
// cudaSuccess, or what the thread's GPU was lost by.
cudaError_t state_of(int gpu);
void lose(int gpu);
bool loses_this_run();  // counts kernels
bool captures();        // the calling thread, on any stream
void forbid_in_capture();
void run_everything(int gpu);  // that its streams hold

// While it lives, memory of one GPU may be touched.
class OnGpu {
  public:
    explicit OnGpu(int gpu);
    ~OnGpu();

  private:
    int gpu_;
};

}  // namespace simt
