// Decides by the build's list of architectures how a device runs its code.
#include "cuda/code.h"

#include <algorithm>
#include <charconv>

namespace aerie::cuda {

namespace {

enum class Code { none, for_driver, machine };

// Machine code also runs on the later devices of its generation, PTX on all later devices. Code for
// one device alone (90a) counts for that device only.
Code code_of(std::string_view architecture, int major, int minor) {
    int number = 0;
    const char* end = architecture.data() + architecture.size();
    const char* after = std::from_chars(architecture.data(), end, number).ptr;
    // A word such as native: the driver decides.
    if (after == architecture.data()) return Code::machine;
    const std::string_view kind(after, size_t(end - after));
    const int device = major * 10 + minor;
    const bool is_later = device >= number;
    const Code machine = is_later && device / 10 == number / 10 ? Code::machine : Code::none;
    const Code for_driver = is_later ? Code::for_driver : Code::none;
    if (kind.empty()) return std::max(machine, for_driver);
    if (kind == "-real") return machine;
    if (kind == "-virtual") return for_driver;
    return device == number ? Code::machine : Code::none;
}

Code best_code(std::string_view architectures, int major, int minor) {
    Code best = Code::none;
    while (!architectures.empty()) {
        const size_t end = architectures.find(',');
        best = std::max(best, code_of(architectures.substr(0, end), major, minor));
        architectures.remove_prefix(end == std::string_view::npos ? architectures.size() : end + 1);
    }
    return best;
}

std::string version(int number) {
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// The first driver for each CUDA: https://docs.nvidia.com/deploy/cuda-compatibility. It runs the
// programs of all versions of CUDA with that number before the dot.
struct FirstDriver {
    int cuda, version;
};
constexpr FirstDriver kFirstDrivers[] = {{11, 450}, {12, 525}, {13, 580}};

}  // namespace

std::string_view built_for() {
    return AERIE_CUDA_BUILT_FOR;
}

bool runs_on(std::string_view architectures, int major, int minor) {
    return best_code(architectures, major, minor) != Code::none;
}

bool is_compiled_by_driver(std::string_view architectures, int major, int minor) {
    return best_code(architectures, major, minor) == Code::for_driver;
}

std::string driver_problem(int driver, int needed) {
    std::string wanted = "a newer one";
    for (const FirstDriver& first : kFirstDrivers)
        if (first.cuda == needed / 1000)
            wanted = "a driver of version " + std::to_string(first.version) + " or newer";
    return "its driver is for CUDA " + version(driver) + ", and this build is of CUDA " +
           version(needed) + ": install " + wanted;
}

}  // namespace aerie::cuda
