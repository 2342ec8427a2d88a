// Shared by all fuzz targets: an Error with a message of one line is correct, anything else is a
// bug.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "io/memory_source.h"

namespace aerie::fuzz {

template <typename Action>
int run(Action action) {
    try {
        action();
    } catch (const Error& error) {
        const std::string_view message = error.what();
        if (message.empty() || message.find('\n') != std::string_view::npos) std::abort();
    }
    return 0;
}

// Reads every byte of every tensor: a wrong range ends the program.
inline void touch(std::string_view file, const std::vector<NamedTensor>& tensors) {
    for (const NamedTensor& tensor : tensors) {
        if (tensor.data.size_bytes != checked_bytes(tensor.shape, tensor.dtype, tensor.name)) {
            std::abort();
        }
        test::data_of(file, tensor);
    }
}

inline std::string_view text(const uint8_t* data, size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

}  // namespace aerie::fuzz
