// The machine that the stand-in runtime shows: its GPUs, and what goes wrong on them. Tests set it
// up; at first it has one GPU, on which nothing fails.
#pragma once

#include <cuda_runtime.h>

#include <vector>

namespace simt {

struct Gpu {
    int major = 9, minor = 0;
    bool answers = true;   // else its properties cannot be read
    bool has_code = true;  // this program's code runs on it
    size_t memory_bytes = size_t(4) << 30;
    int multiprocessors = 2;
    size_t block_bytes = size_t(227) << 10;  // shared memory that a block may have
};

// Replaces the GPUs, and plans no failures. Nothing may be alive on the old ones.
void set_gpus(std::vector<Gpu> gpus);

// Sets, until the next set_gpus, the driver's version (0: there is none), and its answer when it is
// asked for GPUs.
void set_driver(int version, cudaError_t result);

// How many kernels were launched to begin while the one before them runs.
long& launched_beside();

// The next launch after `launches` more fails with this error.
void fail_launch(int launches, cudaError_t error);
// The next kernel to run after `kernels` more ends in an illegal address: its GPU is lost.
void fail_run(int kernels);

// Objects that were made and not freed.
struct Live {
    int streams = 0, graphs = 0, executables = 0, events = 0, buffers = 0, pinned = 0;
};
Live& live();

// The rest is for the stand-ins.

int current_gpu();  // the calling thread's
// Returns an error, and keeps it for cudaGetLastError.
cudaError_t failed(cudaError_t error);
// cudaSuccess, or the error by which the GPU was lost.
cudaError_t state_of(int gpu);
void lose(int gpu);
bool loses_this_run();  // whether fail_run() wants it; counts kernels
bool captures();        // whether some stream is being captured
void forbid_in_capture();
void run_everything(int gpu);  // does the work that its streams hold

// While it lives, memory of one GPU may be touched.
class OnGpu {
  public:
    explicit OnGpu(int gpu);
    ~OnGpu();

  private:
    int gpu_;
};

}  // namespace simt
