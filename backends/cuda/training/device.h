// Trains on an NVIDIA GPU: products by cuBLAS where it is installed, everything else by kernels.
#pragma once

#include <memory>
#include <string>

#include "backend/training.h"

namespace aerie::cuda {

// Opens a GPU by its name, such as cuda:0. Throws Error, also if there is no driver or no such GPU.
std::unique_ptr<TrainingDevice> open_training(const std::string& device);

}  // namespace aerie::cuda
