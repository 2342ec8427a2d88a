// Matmuls whose columns are shared out among blocks: when they are, and that no bit shows it.
#include "cuda/split.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/backend.h"
#include "backend/tensor_plan.h"
#include "cuda/cuda_backend.h"
#include "simt/machine.h"

namespace aerie {

namespace {

constexpr int kRows = 320, kCols = 2304;  // three blocks of rows, three parts of the columns

std::vector<float> values(size_t count, uint32_t seed) {
    std::vector<float> made(count);
    for (float& value : made) {
        seed = seed * 1664525u + 1013904223u;
        value = float(int32_t(seed)) * 0x1p-31f;
    }
    return made;
}

// Bytes of the products, plain, gated, and of what a norm leaves, each made twice in the same
// place.
std::vector<std::byte> products(int multiprocessors, DType type, int tokens) {
    simt::set_gpus({simt::Gpu{.multiprocessors = multiprocessors}});
    const auto backend = open_cuda("cuda:0", false);
    backend->reserve({.rows = 64, .widest = kCols});
    const std::vector<float> weights = values(size_t(kRows) * kCols, 1);
    const float* up = weights.data() + weights.size() / 2;
    const WeightBlock both[] = {{DType::F32, type, weights.data(), kRows / 2, kCols},
                                {DType::F32, type, up, kRows / 2, kCols}};
    const auto plain = backend->upload_weight(both);
    const auto paired = backend->upload_weight(both, WeightUse::gated);
    TensorPlan plan;
    Tensor x, out, scratch, gated;
    plan.add(x, DType::F32, tokens, kCols);
    plan.add(out, DType::F32, tokens, kRows);
    plan.add(scratch, DType::F32, tokens, kRows);
    plan.add(gated, backend->activation_type(*paired), tokens, kRows / 2);
    Tensor scale, norm, of_norm;
    plan.add(scale, DType::F32, 1, kCols);
    plan.add(norm, backend->activation_type(*plain), tokens, kCols);
    plan.add(of_norm, DType::F32, tokens, kRows);
    const Buffer memory = plan.allocate(*backend);
    backend->write(x, values(size_t(tokens) * kCols, 2).data());
    backend->write(scale, values(kCols, 3).data());
    for (int i = 0; i < 2; ++i) {
        backend->run(Matmul{out, x, *plain});
        backend->run(MatmulSwiglu{gated, scratch, x, *paired});
        backend->run(RmsNorm{norm, x, scale, 1e-5f, {plain.get()}});
        backend->run(Matmul{of_norm, norm, *plain});
    }
    std::vector<std::byte> bytes;
    for (const Tensor& result : {out, gated, of_norm}) {
        const size_t size = size_t(tokens) * size_bytes(result.dtype, size_t(result.cols));
        bytes.resize(bytes.size() + size);
        backend->read(result, bytes.data() + bytes.size() - size);
    }
    return bytes;
}

class SplitTest : public testing::TestWithParam<DType> {
  protected:
    void TearDown() override { simt::set_gpus({simt::Gpu{}}); }
};

TEST_P(SplitTest, NoBitDependsOnIt) {
    for (int tokens : {1, 20, 64}) {
        const std::vector<std::byte> undivided = products(1, GetParam(), tokens);
        for (int multiprocessors :
             {3, 132})  // of 64 tokens of floats in wide blocks, and in others
            EXPECT_TRUE(products(multiprocessors, GetParam(), tokens) == undivided)
                << tokens << " tokens, " << multiprocessors;
    }
}

INSTANTIATE_TEST_SUITE_P(Types, SplitTest,
                         testing::Values(DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0,
                                         DType::Q5_1, DType::Q4_K, DType::Q6_K),
                         [](const auto& info) { return name(info.param); });

// Of 132 multiprocessors, as an H100 and an H200 have: parts of blocks of 128 rows.
cuda::Split split_of(int rows, int cols, int tokens = 64, int shares = cuda::kMostShares * 8) {
    const cuda::SplitPlan plan{.split = {}, .shares = shares, .multiprocessors = 132};
    return plan.of(cuda::tiles_of(rows, cuda::kBlockRows), cols, cuda::token_tiles(tokens));
}
unsigned parts_of(int rows, int cols, int tokens = 64, int shares = cuda::kMostShares * 8) {
    const cuda::Split split = split_of(rows, cols, tokens, shares);
    return split.blocks + unsigned(split.first_parts) - 1;
}

TEST(SplitPlan, SharesOutWhatWouldLeaveMultiprocessorsIdle) {
    EXPECT_EQ(parts_of(4096, 4096), 4u);
    EXPECT_EQ(parts_of(4096, 11008), 11u);
    EXPECT_EQ(parts_of(12288, 4096), 4u);
    EXPECT_EQ(parts_of(4096, 1024), 1u);   // has one
    EXPECT_EQ(parts_of(32000, 4096), 1u);  // 250 blocks are two for nearly each
    EXPECT_EQ(parts_of(128256, 4096), 1u);
}

TEST(SplitPlan, TheFirstBlockHasSeveralPartsOfManyTokens) {
    EXPECT_EQ(split_of(4096, 4096).first_parts, 1);       // all run at once
    EXPECT_EQ(split_of(12288, 4096).first_parts, 2);      // 384 parts of 264 blocks
    EXPECT_EQ(split_of(22016, 4096, 64).first_parts, 3);  // and one is another block's
    EXPECT_EQ(split_of(12288, 4096, 16).first_parts, 1);
}

TEST(SplitPlan, HasRoom) {
    EXPECT_EQ(parts_of(4096, 4096, 64, 32 * 4 * 8), 4u);
    EXPECT_EQ(parts_of(4096, 4096, 64, 32 * 4 * 8 - 1), 1u);
    EXPECT_EQ(parts_of(4096, 4096, 8, 32 * 4), 4u);
    EXPECT_EQ(parts_of(1 << 20, 1 << 20), 1u);
}

bool is_wide(int rows, int cols, size_t block_bytes = size_t(227) << 10) {
    const cuda::SplitPlan plan{.split = {},
                               .shares = cuda::kMostShares * 8,
                               .multiprocessors = 132,
                               .block_bytes = block_bytes};
    const int blocks = cuda::tiles_of(rows, 2 * cuda::kBlockRows);
    const cuda::Split split = plan.of(blocks, cols, 8, cuda::kWideTiles);
    return plan.keeps_busy(blocks, split, size_t(120) << 10);
}

TEST(SplitPlan, BlocksAreWideWhereEnoughAreLeft) {
    EXPECT_TRUE(is_wide(12288, 4096));
    EXPECT_TRUE(is_wide(22016, 4096));
    EXPECT_TRUE(is_wide(4096, 11008));
    EXPECT_TRUE(is_wide(32000, 4096));
    EXPECT_FALSE(is_wide(4096, 4096));                     // 64 blocks
    EXPECT_FALSE(is_wide(12288, 4096, size_t(99) << 10));  // of an RTX 4090
}

}  // namespace
}  // namespace aerie
