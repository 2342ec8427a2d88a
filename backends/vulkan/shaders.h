// The compiled shaders of this build, made by CMake from shaders/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aerie::vulkan {

struct Shader {
    const char* name;  // "swiglu", "matmul_q8_0", ...
    std::span<const uint32_t> words;
};

std::span<const Shader> shaders();

}  // namespace aerie::vulkan
