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

Matrix quantised_matmul(const Matrix& x, const Matrix& weight, DType type, int part) {
    Matrix out(x.rows, weight.rows);
    for (int n = 0; n < weight.rows; ++n) {
        const std::vector<Group> w = groups_of(weight[n], weight.cols, type);
        for (int m = 0; m < x.rows; ++m) {
            const std::vector<Group> columns = groups_of(x[m], x.cols, DType::I8G32);
            float total = 0;
            for (size_t first = 0; first < w.size(); first += size_t(part / kGroup)) {
                float sum = 0;
                for (size_t g = first; g < w.size() && g < first + size_t(part / kGroup); ++g)
                    sum = sum + term(w[g], columns[g]);
                total = total + sum;
            }
            out[m][n] = total;
        }
    }
    return out;
}

}  // namespace aerie::reference
