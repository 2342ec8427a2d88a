// The compiled shaders of this build, made by CMake from shaders/: a set for the ops, and one for
// training.
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

std::span<const Shader> all_shaders();       // the ops'
std::span<const Shader> training_shaders();  // in aerie_vulkan_training

// Null if there is no shader of this name.
inline const Shader* find_shader(std::string_view name,
                                 std::span<const Shader> among = all_shaders()) {
    for (const Shader& shader : among)
        if (shader.name == name) return &shader;
    return nullptr;
}

// Whether the glslang of this build could compile the shaders with cooperative matrices.
inline bool has_matrix_shaders() {
    return find_shader("matmul_f16_cooperative");
}

}  // namespace aerie::vulkan
