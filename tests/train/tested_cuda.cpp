#include "cuda/training/device.h"
#include "train/tested_device.h"

namespace aerie::test {

std::unique_ptr<TrainingDevice> open_tested_device() {
    return cuda::open_training("cuda:0");
}

}  // namespace aerie::test
