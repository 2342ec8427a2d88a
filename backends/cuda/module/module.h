// The CUDA backend as a file of its own, libaerie_cuda.so: a program that was built with
// -DAERIE_CUDA_MODULE=ON loads it when it lies beside the program. The program is small without it
// and runs where there is no NVIDIA GPU.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/training.h"

namespace aerie::cuda {

// The functions of cuda_backend.h and training/device.h, as the file offers them.
struct CudaModule {
    const char* version;  // aerie's; a file of another version is not used
    std::vector<Capabilities> (*capabilities)();
    std::string (*absence)();
    std::unique_ptr<Backend> (*open)(const std::string& device, bool profile,
                                     const std::function<void(const std::string&)>& on_progress);
    std::unique_ptr<TrainingDevice> (*open_training)(const std::string& device);
};

constexpr const char* kModuleFile = "libaerie_cuda.so";
// The only symbol that the file exports: const CudaModule*().
constexpr const char* kModuleSymbol = "aerie_cuda_module";

// The places where the file may lie: beside the program or the library that contains this code, and
// in the folder `lib` beside theirs.
std::vector<std::filesystem::path> module_places();

// Loads the file from the first of these places that has it, for as long as the program runs. Null
// if that cannot be done; `problem` then says why.
const CudaModule* load_module(const std::vector<std::filesystem::path>& places,
                              std::string& problem);

}  // namespace aerie::cuda
