#include "cpu/training/device.h"
#include "train/tested_device.h"

namespace aerie::test {

std::unique_ptr<TrainingDevice> open_tested_device() {
    return cpu::open_training(cpu::Precision::f32);
}

}  // namespace aerie::test
