// A tensor of 32 x 256 elements that llama.cpp quantised to Q6_K (tests/data/q6_k.bin).
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "core/quant.h"
#include "paths.h"

namespace aerie::test {

inline std::vector<BlockQ6_K> q6_k_tensor() {
    std::ifstream file(test_data_dir() / "q6_k.bin", std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<BlockQ6_K> blocks(bytes.size() / sizeof(BlockQ6_K));
    std::memcpy(blocks.data(), bytes.data(), blocks.size() * sizeof(BlockQ6_K));
    return blocks;
}

}  // namespace aerie::test
