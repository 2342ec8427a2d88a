// The symbol that libaerie_cuda.so exports.
#include "cuda/module/module.h"

#include "cuda/cuda_backend.h"
#include "cuda/training/device.h"

extern "C" __attribute__((visibility("default"))) const aerie::cuda::CudaModule*
aerie_cuda_module() {
    static const aerie::cuda::CudaModule module{AERIE_VERSION, aerie::cuda_capabilities,
                                                aerie::cuda_absence, aerie::open_cuda,
                                                aerie::cuda::open_training};
    return &module;
}
