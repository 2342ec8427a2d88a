// The devices of this build that train.
#include "backend/training.h"

#include "core/error.h"
#include "cpu/training/device.h"
#ifdef AERIE_CUDA
#include "cuda/training/device.h"
#endif
#ifdef AERIE_VULKAN
#include "vulkan/training/device.h"
#endif

namespace aerie {

std::unique_ptr<TrainingDevice> open_training_device(const std::string& device, int threads) {
#ifdef AERIE_CUDA
    if (device.starts_with("cuda")) return cuda::open_training(device);
#endif
#ifdef AERIE_VULKAN
    if (device.starts_with("vulkan")) return vulkan::open_training(device);
#endif
    if (!device.starts_with("cpu")) throw Error(device + ": this device does not train");
    return cpu::open_training(cpu::Precision::f32, threads);
}

}  // namespace aerie
