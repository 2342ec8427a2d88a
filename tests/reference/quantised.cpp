// Unpacks groups into quantised values and scales, then uses plain loops.
#include "reference/quantised.h"

#include <cstring>
#include <random>
#include <stdexcept>

namespace aerie::reference {

namespace {

struct Group {
    float scale = 0, least = 0;
    int scales[2] = {1, 1}, leasts[2] = {};
    int q[kGroup] = {};
};

std::vector<Group> groups_of(const Blocks& weight, int row) {
    std::vector<Group> groups;
    const std::byte* block = weight.row(row);
    const int elements = unit_elements(weight.type);
    for (int first = 0; first < weight.cols; first += elements) {
        const BlockParts parts = take_apart(weight.type, block);
        block += unit_bytes(weight.type);
        for (int k = 0; k < elements; k += kGroup) {
            Group& group = groups.emplace_back();
            group.scale = f16_to_f32(parts.scale);
            group.least = f16_to_f32(parts.least);
            for (int half = 0; half < 2; ++half) {
                group.scales[half] = parts.scales[k / 16 + half];
                group.leasts[half] = parts.leasts[k / 16 + half];
            }
            for (int i = 0; i < kGroup; ++i) group.q[i] = parts.q[k + i];
        }
    }
    return groups;
}

std::vector<Group> activations(const float* row, int cols) {
    std::vector<Group> groups;
    for (int first = 0; first < cols; first += kGroup) {
        const BlockI8G32 block = pack_i8g32(row + first);
        Group& group = groups.emplace_back();
        group.scale = block.scale;
        for (int i = 0; i < kGroup; ++i) group.q[i] = block.q[i];
    }
    return groups;
}

float term(const Group& weight, const Group& x, bool has_least) {
    int dot = 0, sum = 0;
    for (int i = 0; i < kGroup; ++i) {
        dot += weight.scales[i / 16] * weight.q[i] * x.q[i];
        sum += weight.leasts[i / 16] * x.q[i];
    }
    const float scale = weight.scale * x.scale;
    const float product = float(dot) * scale;
    if (!has_least) return product;
    const float least = weight.least * x.scale;
    const float less = float(sum) * least;
    return product - less;
}

float product(const std::vector<Group>& w, const std::vector<Group>& x, int part, bool has_least) {
    float total = 0;
    for (size_t first = 0; first < w.size(); first += size_t(part / kGroup)) {
        float sum = 0;
        for (size_t g = first; g < w.size() && g < first + size_t(part / kGroup); ++g)
            sum = sum + term(w[g], x[g], has_least);
        total = total + sum;
    }
    return total;
}

bool has_least(DType type) {
    return with_block(type, [](auto block) {
        return requires {
            block.least;
        };
    });
}

// Calls make(Block&) to fill each block.
template <class Make>
Blocks made_blocks(DType type, int rows, int cols, const Make& make) {
    Blocks blocks{type, rows, cols, {}};
    blocks.data.resize(size_t(rows) * blocks.row_bytes());
    with_block(type, [&](auto block) {
        for (size_t at = 0; at < blocks.data.size(); at += sizeof(block)) {
            make(block);
            std::memcpy(&blocks.data[at], &block, sizeof(block));
        }
    });
    return blocks;
}

template <class Block>
void set_scales(Block& block, float scale, float least) {
    block.scale = f32_to_f16(scale);
    if constexpr (requires { block.least; }) block.least = f32_to_f16(least);
}

}  // namespace

Blocks packed_blocks(const Matrix& values, DType type) {
    if (type != DType::Q8_0 && type != DType::Q4_0) throw std::logic_error("no packing to that");
    const float* next = values.data.data();
    return made_blocks(type, values.rows, values.cols, [&](auto& block) {
        if constexpr (requires { block = pack_q8_0(next); }) block = pack_q8_0(next);
        if constexpr (requires { block = pack_q4_0(next); }) block = pack_q4_0(next);
        next += kGroup;
    });
}

Blocks random_blocks(DType type, int rows, int cols, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 0.01f);
    return made_blocks(type, rows, cols, [&](auto& block) {
        unsigned char bytes[sizeof(block)];
        for (unsigned char& byte : bytes) byte = (unsigned char)random();
        std::memcpy(&block, bytes, sizeof(block));
        set_scales(block, normal(random), normal(random));
    });
}

Blocks extreme_blocks(DType type, int rows, int cols, bool ones) {
    return made_blocks(type, rows, cols, [&](auto& block) {
        std::memset(&block, ones ? 0xFF : 0, sizeof(block));
        set_scales(block, -0.5f, 0.25f);
    });
}

Matrix quantised_matmul(const Matrix& x, const Blocks& weight, int part) {
    Matrix out(x.rows, weight.rows);
    std::vector<std::vector<Group>> columns;
    for (int m = 0; m < x.rows; ++m) columns.push_back(activations(x[m], x.cols));
    const bool least = has_least(weight.type);
    for (int n = 0; n < weight.rows; ++n) {
        const std::vector<Group> w = groups_of(weight, n);
        for (int m = 0; m < x.rows; ++m) out[m][n] = product(w, columns[size_t(m)], part, least);
    }
    return out;
}

}  // namespace aerie::reference
