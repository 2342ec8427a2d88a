// Arrays in shared memory, and the shared memory that a launch asks for. tests/simt has a
// SharedArray that checks every access.
#pragma once

#include <cuda_runtime.h>

namespace aerie::cuda {

template <class T, int count>
class SharedArray {
  public:
    __device__ T& operator[](int index) { return data_[index]; }
    // Several elements as one larger value, at a multiple of its size.
    template <class Joined>
    __device__ Joined joined(int index) const {
        return reinterpret_cast<const Joined&>(data_[index]);
    }

    // One of the smaller values that an element is made of.
    template <class Part>
    __device__ Part part(int index, int place) const {
        return reinterpret_cast<const Part*>(&data_[index])[place];
    }

  private:
    alignas(16) T data_[count];
};

// The shared memory that the launch asked for (Grid::shared_bytes).
template <class T>
__device__ inline T& launch_shared() {
    extern __shared__ uint4 memory[];
    return reinterpret_cast<T&>(memory);
}

}  // namespace aerie::cuda
