// Entry of the CUDA backend for the registry.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie {

// Every NVIDIA GPU, "cuda:0" first; one that cannot be used has a problem. The list is empty if
// there is no driver or no GPU. If the driver is too old or does not answer, there is one entry
// with that as its problem.
std::vector<Capabilities> cuda_capabilities();

// Why cuda_capabilities() is empty; empty if it is not.
std::string cuda_absence();

// Opens a GPU by its name. Throws Error, also if there is no driver or no such GPU. `profile`:
// every kernel is timed. `on_progress`, which may be empty, is called before work that takes long.
// A call of the backend makes its GPU the calling thread's current one for CUDA, and leaves it so.
std::unique_ptr<Backend> open_cuda(const std::string& device, bool profile = false,
                                   const std::function<void(const std::string&)>& on_progress = {});

}  // namespace aerie
