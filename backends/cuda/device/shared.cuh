// Arrays in the shared memory of a block; tests/simt has one that watches its elements.
#pragma once

#include <cuda_runtime.h>

namespace aerie::cuda {

template <class T, int count>
class SharedArray {
  public:
    __device__ T& operator[](int index) { return data_[index]; }
    // One of the smaller values that an element is made of.
    template <class Part>
    __device__ Part part(int index, int place) const {
        return reinterpret_cast<const Part*>(&data_[index])[place];
    }

  private:
    T data_[count];
};

}  // namespace aerie::cuda
