// Groups as whole numbers and a scale, then plain loops.
#include "reference/quantised.h"

#include <stdexcept>

#include "core/quant.h"

namespace aerie::reference {

namespace {

struct Group {
    float scale = 0;
    int q[kGroup] = {};
};

Group group_of(const float* values, DType type) {
    Group group;
    if (type == DType::I8G32) {
        const BlockI8G32 block = pack_i8g32(values);
        group.scale = block.scale;
        for (int i = 0; i < kGroup; ++i) group.q[i] = block.q[i];
    } else if (type == DType::Q8_0) {
        const BlockQ8_0 block = pack_q8_0(values);
        group.scale = f16_to_f32(block.scale);
        for (int i = 0; i < kGroup; ++i) group.q[i] = block.q[i];
    } else if (type == DType::Q4_0) {
        const BlockQ4_0 block = pack_q4_0(values);
        group.scale = f16_to_f32(block.scale);
        for (int i = 0; i < kGroup / 2; ++i) {
            group.q[i] = block.q[i] % 16 - 8;
            group.q[i + kGroup / 2] = block.q[i] / 16 - 8;
        }
    } else {
        throw std::logic_error("no groups in this type");
    }
    return group;
}

// Element i of a block times its 8-bit scale.
int scaled_step(const BlockQ6_K& block, int i) {
    const int half = i / 128, place = i % 32, quarter = i % 128 / 32;
    const int low = block.low[half * 64 + quarter % 2 * 32 + place] / (quarter < 2 ? 1 : 16) % 16;
    const int high = block.high[half * 32 + place] / (1 << 2 * quarter) % 4;
    return block.scales[i / 16] * (high * 16 + low - 32);
}

std::vector<Group> groups_of(const BlockQ6_K* blocks, size_t count) {
    std::vector<Group> groups;
    for (size_t b = 0; b < count; ++b)
        for (int g = 0; g < BlockQ6_K::kElements / kGroup; ++g) {
            Group& group = groups.emplace_back();
            group.scale = f16_to_f32(blocks[b].scale);
            for (int i = 0; i < kGroup; ++i) group.q[i] = scaled_step(blocks[b], g * kGroup + i);
        }
    return groups;
}

std::vector<Group> groups_of(const float* row, int cols, DType type) {
    std::vector<Group> groups;
    for (int i = 0; i < cols; i += kGroup) groups.push_back(group_of(row + i, type));
    return groups;
}

float term(const Group& weight, const Group& x) {
    int dot = 0;
    for (int i = 0; i < kGroup; ++i) dot += weight.q[i] * x.q[i];
    const float scale = weight.scale * x.scale;
    return float(dot) * scale;
}

}  // namespace

namespace {

float product(const std::vector<Group>& w, const std::vector<Group>& x, int part) {
    float total = 0;
    for (size_t first = 0; first < w.size(); first += size_t(part / kGroup)) {
        float sum = 0;
        for (size_t g = first; g < w.size() && g < first + size_t(part / kGroup); ++g)
            sum = sum + term(w[g], x[g]);
        total = total + sum;
    }
    return total;
}

}  // namespace

Matrix quantised_matmul(const Matrix& x, const Matrix& weight, DType type, int part) {
    Matrix out(x.rows, weight.rows);
    for (int n = 0; n < weight.rows; ++n) {
        const std::vector<Group> w = groups_of(weight[n], weight.cols, type);
        for (int m = 0; m < x.rows; ++m)
            out[m][n] = product(w, groups_of(x[m], x.cols, DType::I8G32), part);
    }
    return out;
}

Matrix quantised_matmul(const Matrix& x, const std::vector<BlockQ6_K>& weight, int rows, int part) {
    Matrix out(x.rows, rows);
    const size_t blocks = weight.size() / size_t(rows);
    for (int n = 0; n < rows; ++n) {
        const std::vector<Group> w = groups_of(&weight[size_t(n) * blocks], blocks);
        for (int m = 0; m < x.rows; ++m)
            out[m][n] = product(w, groups_of(x[m], x.cols, DType::I8G32), part);
    }
    return out;
}

}  // namespace aerie::reference
