// The devices of this build that train.
#include "backend/training.h"

#include "cpu/training/device.h"

namespace aerie {

std::unique_ptr<TrainingDevice> open_training_device(int threads) {
    return cpu::open_training(cpu::Precision::f32, threads);
}

}  // namespace aerie
