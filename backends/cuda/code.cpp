// What the build's list of architectures says of a device.
#include "cuda/code.h"

#include <charconv>

namespace aerie::cuda {

namespace {

// Machine code runs on the later devices of its generation too, a driver's code on all later ones.
// What is made for one device alone (90a) counts for that one.
bool runs(std::string_view architecture, int major, int minor) {
    int number = 0;
    const char* end = architecture.data() + architecture.size();
    const char* after = std::from_chars(architecture.data(), end, number).ptr;
    if (after == architecture.data()) return true;  // a word of CMake's: the driver will tell
    const std::string_view kind(after, size_t(end - after));
    const int device = major * 10 + minor;
    const bool machine_code = device / 10 == number / 10 && device >= number;
    if (kind.empty()) return machine_code || device >= number;
    if (kind == "-real") return machine_code;
    if (kind == "-virtual") return device >= number;
    return device == number;
}

}  // namespace

std::string_view built_for() {
    return AERIE_CUDA_BUILT_FOR;
}

bool runs_on(std::string_view architectures, int major, int minor) {
    while (!architectures.empty()) {
        const size_t end = architectures.find(',');
        if (runs(architectures.substr(0, end), major, minor)) return true;
        architectures.remove_prefix(end == std::string_view::npos ? architectures.size() : end + 1);
    }
    return false;
}

}  // namespace aerie::cuda
