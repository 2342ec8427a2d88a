// Entry of the CUDA backend for the registry.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"

namespace aerie {

// Every usable NVIDIA GPU, "cuda:0" first; none where there is no driver.
std::vector<Capabilities> cuda_devices();

// Throws Error, also where there is no driver or no such GPU.
std::unique_ptr<Backend> open_cuda(int index);

}  // namespace aerie
