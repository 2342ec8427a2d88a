// Trains on the CPU: products by a BLAS, everything else in plain loops over the threads.
#pragma once

#include "backend/training.h"

namespace aerie::cpu {

enum class Precision { f32, f64 };

// threads: 0 = one per core that this process may use.
std::unique_ptr<TrainingDevice> open_training(Precision precision, int threads = 0);

}  // namespace aerie::cpu
