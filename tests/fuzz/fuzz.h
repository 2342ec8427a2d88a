// What every fuzz target shares: an Error of one line is fine, anything else is a find.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "io/tensor_file.h"

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

// Reads every byte of every tensor, so that the sanitizer sees a span that is wrong.
inline void touch(const std::vector<NamedTensor>& tensors) {
    static volatile unsigned sum = 0;
    for (const NamedTensor& tensor : tensors) {
        if (tensor.data.size() != checked_bytes(tensor.shape, tensor.dtype, tensor.name)) {
            std::abort();
        }
        for (const std::byte byte : tensor.data) sum = sum + unsigned(byte);
    }
}

inline std::span<const std::byte> bytes(const uint8_t* data, size_t size) {
    return std::as_bytes(std::span(data, size));
}
inline std::string_view text(const uint8_t* data, size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

}  // namespace aerie::fuzz
