// The device whose training ops a test program tests; each program defines it.
#pragma once

#include <memory>

#include "backend/training.h"

namespace aerie::test {

// Throws Error if this machine lacks the device.
std::unique_ptr<TrainingDevice> open_tested_device();

}  // namespace aerie::test
