// Plain code: integers first, then the sum over groups in its order.
#include "cpu/matmul_blocks.h"

#include <algorithm>
#include <cassert>

#include "core/quant.h"
#include "cpu/memory.h"

namespace aerie::cpu {

namespace {

constexpr int kGroups = BlockQ6_K::kElements / kGroup;  // of a block
constexpr int kPartBlocks = kSumPart / BlockQ6_K::kElements;

int32_t dot(const int8_t* a, const int8_t* b, int count) {
    int32_t sum = 0;
    for (int i = 0; i < count; ++i) sum += int32_t(a[i]) * b[i];
    return sum;
}

// The block's groups are added to the sum.
float add_block(float sum, const BlockQ6_K& block, const int8_t* steps, const BlockI8G32* x) {
    constexpr int kScaled = BlockQ6_K::kScaled;
    const float scale = f16_to_f32(block.scale);
    for (int g = 0; g < kGroups; ++g) {
        const int8_t* q = steps + g * kGroup;
        const int8_t* scales = block.scales + g * (kGroup / kScaled);
        const int32_t both = scales[0] * dot(q, x[g].q, kScaled) +
                             scales[1] * dot(q + kScaled, x[g].q + kScaled, kScaled);
        sum += float(both) * (scale * x[g].scale);
    }
    return sum;
}

}  // namespace

void multiply_block_row(const Tensor& x, const std::byte* blocks, [[maybe_unused]] DType type,
                        const MatmulOutput& output) {
    assert(type == DType::Q6_K && x.rows <= kMostColumns);
    const BlockQ6_K* weight = reinterpret_cast<const BlockQ6_K*>(blocks);
    const int count = x.cols / BlockQ6_K::kElements;
    float sums[kMostColumns], totals[kMostColumns] = {};
    int8_t steps[BlockQ6_K::kElements];
    for (int i = 0; i < count; ++i) {
        if (i % kPartBlocks == 0) std::fill_n(sums, x.rows, 0.0f);
        unpack_steps(steps, weight[i]);
        for (int c = 0; c < x.rows; ++c)
            sums[c] = add_block(sums[c], weight[i], steps, row<BlockI8G32>(x, c) + i * kGroups);
        if ((i + 1) % kPartBlocks == 0 || i + 1 == count)
            for (int c = 0; c < x.rows; ++c) totals[c] += sums[c];
    }
    for (int c = 0; c < x.rows; ++c) {
        float* out = output.column(c);
        const float value = output.bias ? totals[c] + *output.bias : totals[c];
        *out = output.accumulate ? *out + value : value;
    }
}

}  // namespace aerie::cpu
