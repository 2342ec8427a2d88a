// The functions of the CUDA backend for a program that does not contain it. The file is looked for
// once, when the first of them is called.
#include <dlfcn.h>

#include <system_error>

#include "core/error.h"
#include "core/platform.h"
#include "cuda/cuda_backend.h"
#include "cuda/module/module.h"
#include "cuda/training/device.h"

namespace fs = std::filesystem;

namespace aerie {

namespace cuda {

std::vector<fs::path> module_places() {
    std::vector<fs::path> places;
    for (const fs::path& file : {platform::library(), platform::program()}) {
        if (file.empty()) continue;
        const fs::path folder = file.parent_path();
        places.push_back(folder / kModuleFile);
        places.push_back(folder.parent_path() / "lib" / kModuleFile);
    }
    return places;
}

const CudaModule* load_module(const std::vector<fs::path>& places, std::string& problem) {
    problem = std::string("this program loads it from ") + kModuleFile + ", which is not beside it";
    for (const fs::path& place : places) {
        std::error_code ignored;
        if (!fs::exists(place, ignored)) continue;
        void* const library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            problem = std::string("cannot load it: ") + ::dlerror();
            return nullptr;
        }
        const auto function =
            reinterpret_cast<const CudaModule* (*)()>(::dlsym(library, kModuleSymbol));
        const CudaModule* const module = function ? function() : nullptr;
        if (!module) {
            problem = place.string() + " is not aerie's";
            return nullptr;
        }
        if (module->version != std::string(AERIE_VERSION)) {
            problem = place.string() + " is of version " + module->version +
                      ", this program of version " + AERIE_VERSION;
            return nullptr;
        }
        problem.clear();
        return module;
    }
    return nullptr;
}

namespace {

struct Loaded {
    std::string problem;
    const CudaModule* module = load_module(module_places(), problem);
};

const Loaded& loaded() {
    static const Loaded once;
    return once;
}

const CudaModule& module_for(const std::string& device) {
    if (!loaded().module) throw Error(device + ": " + loaded().problem, Cause::no_device);
    return *loaded().module;
}

}  // namespace

std::unique_ptr<TrainingDevice> open_training(const std::string& device) {
    return module_for(device).open_training(device);
}

}  // namespace cuda

std::vector<Capabilities> cuda_capabilities() {
    const cuda::CudaModule* module = cuda::loaded().module;
    return module ? module->capabilities() : std::vector<Capabilities>();
}

std::string cuda_absence() {
    const cuda::Loaded& loaded = cuda::loaded();
    return loaded.module ? loaded.module->absence() : loaded.problem;
}

std::unique_ptr<Backend> open_cuda(const std::string& device, bool profile,
                                   const std::function<void(const std::string&)>& on_progress) {
    return cuda::module_for(device).open(device, profile, on_progress);
}

}  // namespace aerie
