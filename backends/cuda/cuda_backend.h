// Entry of the CUDA backend for the registry.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie {

// Every NVIDIA GPU, "cuda:0" first; one that cannot be used says why. None where there is no driver
// or no GPU; where the driver answers no question, one that says why.
std::vector<Capabilities> cuda_capabilities();

// By its name; throws Error, also where there is no driver or no such GPU. `profile`: every kernel
// is timed. `on_progress`, which may be empty, hears of work that takes long. A call makes the GPU
// that of the calling thread for CUDA, and leaves it so.
std::unique_ptr<Backend> open_cuda(const std::string& device, bool profile = false,
                                   const std::function<void(const std::string&)>& on_progress = {});

}  // namespace aerie
