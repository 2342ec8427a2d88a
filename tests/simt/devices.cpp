// The device under test: the CUDA kernels under the execution model.
#include "cuda/cuda_backend.h"
#include "ops/device_test.h"

namespace aerie {

std::vector<Device> devices() {
    return {{"cuda_simt", [] { return open_cuda("cuda:0"); }, 21}};
}

}  // namespace aerie
