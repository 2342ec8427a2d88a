// Entry of the CUDA backend for the registry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie {

// Every usable NVIDIA GPU, "cuda:0" first; none where there is no driver.
std::vector<Capabilities> cuda_capabilities();

// By its name; throws Error, also where there is no driver or no such GPU. `profile`: every kernel
// is timed.
std::unique_ptr<Backend> open_cuda(const std::string& device, bool profile = false);

}  // namespace aerie
