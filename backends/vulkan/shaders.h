// The compiled shaders of this build, made by CMake from shaders/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace aerie::vulkan {

struct Shader {
    const char* name;  // "swiglu", "matmul_q8_0", ...
    std::span<const uint32_t> words;
};

std::span<const Shader> all_shaders();

// Null if this build has no shader of this name.
const Shader* find_shader(std::string_view name);

// Whether the glslang of this build could compile the shaders with cooperative matrices.
inline bool has_matrix_shaders() {
    return find_shader("matmul_f16_cooperative");
}

}  // namespace aerie::vulkan
