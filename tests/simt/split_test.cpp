// Split-K matmuls, and attention with chunks that are divided among blocks: when work is
// divided, and what the bits may depend on.
#include "cuda/split.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <tuple>

#include "backend/backend.h"
#include "backend/tensor_plan.h"
#include "cuda/cuda_backend.h"
#include "simt/machine.h"

namespace aerie {

namespace {

constexpr int kRows = 320, kCols = 2304;  // three blocks of rows, three parts of the columns

// The bytes of each row of some results.
using Rows = std::vector<std::vector<std::byte>>;

std::vector<float> values(size_t count, uint32_t seed) {
    std::vector<float> made(count);
    for (float& value : made) {
        seed = seed * 1664525u + 1013904223u;
        value = float(int32_t(seed)) * 0x1p-31f;
    }
    return made;
}

Rows rows_of(Backend& backend, const Tensor& result) {
    Rows rows;
    for (int r = 0; r < result.rows; ++r) {
        rows.emplace_back(size_bytes(result.dtype, size_t(result.cols)));
        backend.read(result.row_range(r, 1), rows.back().data());
    }
    return rows;
}

// The products of a plain matmul, of a gated one and of one behind a norm, each made twice in the
// same place.
std::vector<Rows> products(int multiprocessors, DType type, int tokens) {
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
    Tensor x, room, out, scratch, gated;
    plan.add(x, DType::F32, tokens, kCols);
    plan.add(room, DType::F32, tokens, kCols);
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
    const Tensor inner = activation(*backend, x, *plain, room);
    for (int i = 0; i < 2; ++i) {
        backend->run(Matmul{out, inner, *plain});
        backend->run(MatmulGated{gated, scratch, inner, *paired, Activation::silu});
        backend->run(RmsNorm{norm, x, scale, 1e-5f, {plain.get()}});
        backend->run(Matmul{of_norm, norm, *plain});
    }
    std::vector<Rows> results;
    for (const Tensor& result : {out, gated, of_norm}) results.push_back(rows_of(*backend, result));
    return results;
}

// The same, computed once for all tests.
const std::vector<Rows>& known_products(int multiprocessors, DType type, int tokens) {
    static std::map<std::tuple<int, DType, int>, std::vector<Rows>> known;
    std::vector<Rows>& results = known[{multiprocessors, type, tokens}];
    if (results.empty()) results = products(multiprocessors, type, tokens);
    return results;
}

// The results of a pass that is run three times: a matmul that adds to rows, before a norm, before
// another op and as the last op, and Q, K and V that are rotated. Also the times of its ops, if
// they are wanted.
std::vector<Rows> sums(int multiprocessors, DType type, int tokens,
                       std::vector<OpTime>* times = nullptr) {
    simt::set_gpus({simt::Gpu{.multiprocessors = multiprocessors}});
    const auto backend = open_cuda("cuda:0", times != nullptr);
    backend->reserve({.rows = 64, .widest = kCols});
    const std::vector<float> weights = values(size_t(kRows) * kCols, 1);
    const WeightBlock wide[] = {{DType::F32, type, weights.data(), kRows, kCols}};
    const WeightBlock square[] = {{DType::F32, type, weights.data(), kRows, kRows}};
    const auto down = backend->upload_weight(wide), next = backend->upload_weight(square);
    TensorPlan plan;
    Tensor x, room, bias, row, scale, norm, of_norm, copied;
    plan.add(x, DType::F32, tokens, kCols);
    plan.add(room, DType::F32, tokens, kCols);
    plan.add(bias, DType::F32, 1, kRows);
    plan.add(row, DType::F32, tokens, kRows);
    plan.add(scale, DType::F32, 1, kRows);
    plan.add(norm, backend->activation_type(*next), tokens, kRows);
    plan.add(of_norm, DType::F32, tokens, kRows);
    plan.add(copied, DType::F32, tokens, kRows);
    constexpr AttentionShape kShape{3, 1, 64};
    static_assert((kShape.heads + 2 * kShape.kv_heads) * kShape.head_dim == kRows);
    Tensor qkv, rope, block;
    KvLayer kv;
    plan.add(qkv, DType::F32, tokens, kRows);
    plan.add(rope, DType::F32, kPageSize, kShape.head_dim);
    plan.add(block, DType::I32, tokens, kRowInts);
    plan.add(kv.k, DType::F16, kPageSize, kShape.head_dim);
    plan.add(kv.v, DType::F16, kPageSize, kShape.head_dim);
    plan.add(kv.page_table, DType::I32, 1, 1);
    const Buffer memory = plan.allocate(*backend);
    backend->write(x, values(size_t(tokens) * kCols, 2).data());
    backend->write(bias, values(kRows, 3).data());
    backend->write(row, values(size_t(tokens) * kRows, 4).data());
    backend->write(scale, values(kRows, 5).data());
    backend->write(rope, values(kPageSize * kShape.head_dim, 6).data());
    std::vector<Row> places(size_t(tokens), Row{});
    for (int i = 0; i < tokens; ++i)
        places[size_t(i)].position = places[size_t(i)].slot = places[size_t(i)].prefix = i;
    backend->write(block, places.data());
    const int32_t page = 0;
    backend->write(kv.page_table, &page);
    const Tensor inner = activation(*backend, x, *down, room);
    for (int i = 0; i < 3; ++i)
        backend->replay(1, [&] {
            backend->run(Matmul{row, inner, *down, Accumulate::yes});
            backend->run(RmsNorm{norm, row, scale, 1e-5f, {next.get()}});
            backend->run(Matmul{of_norm, norm, *next});
            backend->run(MatmulRope{qkv, inner, *down, bias, rope, {block}, kShape, kv});
            backend->run(Matmul{row, inner, *down, Accumulate::yes, bias});
            backend->run(Copy{copied, row});
            backend->run(Matmul{row, inner, *down, Accumulate::yes});
        });
    std::vector<Rows> results;
    for (const Tensor& result :
         {of_norm, copied, row, qkv.col_range(0, kShape.heads * kShape.head_dim),
          kv.k.row_range(0, tokens), kv.v.row_range(0, tokens)})
        results.push_back(rows_of(*backend, result));
    if (times) *times = backend->op_times();
    return results;
}

// The attention of rows of a text to a cache that has all of it, as floats and quantised. With few
// multiprocessors a block has all chunks of its rows; with many, blocks divide them.
std::vector<Rows> mixes(int multiprocessors, AttentionShape shape, int tokens) {
    simt::set_gpus({simt::Gpu{.multiprocessors = multiprocessors}});
    const auto backend = open_cuda("cuda:0", false);
    constexpr int kBefore = 150, kPages = 4;
    const int columns = shape.heads * shape.head_dim, width = shape.kv_heads * shape.head_dim;
    backend->reserve({.rows = 64,
                      .widest = columns,
                      .context = kPages * kPageSize,
                      .heads = shape.heads,
                      .queries = shape.heads / shape.kv_heads,
                      .head_dim = shape.head_dim});
    TensorPlan plan;
    Tensor qkv, block, floats, groups;
    KvLayer kv;
    plan.add(qkv, DType::F32, tokens, columns + 2 * width);
    plan.add(block, DType::I32, tokens, kRowInts);
    plan.add(kv.k, DType::F16, kPages * kPageSize, width);
    plan.add(kv.v, DType::F16, kPages * kPageSize, width);
    plan.add(kv.page_table, DType::I32, 1, kPages);
    plan.add(floats, DType::F32, tokens, columns);
    plan.add(groups, DType::I8G32, tokens, columns);
    const Buffer memory = plan.allocate(*backend);
    for (auto [part, seed] : {std::pair(kv.k, 1u), {kv.v, 2u}}) {
        std::vector<uint16_t> halves;
        for (float value : values(size_t(part.rows) * size_t(part.cols), seed))
            halves.push_back(f32_to_f16(value));
        backend->write(part, halves.data());
    }
    const int32_t pages[kPages] = {2, 0, 3, 1};
    backend->write(kv.page_table, pages);
    backend->write(qkv, values(size_t(tokens) * size_t(qkv.cols), 3).data());
    std::vector<Row> rows;
    for (int i = 0; i < tokens; ++i) rows.push_back(causal_row(0, kBefore + i));
    backend->write(block, rows.data());
    for (int i = 0; i < 2; ++i) {
        backend->run(Attention{floats, qkv, {block}, shape, kv, shape.usual_scale()});
        backend->run(Attention{groups, qkv, {block}, shape, kv, shape.usual_scale()});
    }
    return {rows_of(*backend, floats), rows_of(*backend, groups)};
}

class SplitTest : public testing::TestWithParam<DType> {
  protected:
    void TearDown() override { simt::set_gpus({simt::Gpu{}}); }
};

// Expects that of(multiprocessors, tokens), for few tokens, has the bits that it has for the same
// rows among many tokens.
template <class Of>
void expect_rows_alone(const Of& of) {
    for (int multiprocessors : {3, 132}) {
        const std::vector<Rows> most = of(multiprocessors, 64);
        for (int tokens : {1, 20}) {
            const std::vector<Rows> fewer = of(multiprocessors, tokens);
            for (size_t i = 0; i < most.size(); ++i)
                for (size_t r = 0; r < fewer[i].size(); ++r)
                    ASSERT_TRUE(fewer[i][r] == most[i][r])
                        << multiprocessors << " multiprocessors, " << tokens << " tokens, result "
                        << i << ", row " << r;
        }
    }
}

TEST_P(SplitTest, NoBitDependsOnTheNumberOfTokens) {
    expect_rows_alone([](int multiprocessors, int tokens) {
        return known_products(multiprocessors, GetParam(), tokens);
    });
}

// The parts of quantised weights are those of every backend.
TEST_P(SplitTest, NoBitOfQuantisedWeightsDependsOnIt) {
    if (!is_quantised(GetParam())) GTEST_SKIP() << "sums of floats are those of a device";
    for (int tokens : {1, 20, 64}) {
        const std::vector<Rows>& undivided = known_products(1, GetParam(), tokens);
        for (int multiprocessors : {3, 132})
            EXPECT_TRUE(known_products(multiprocessors, GetParam(), tokens) == undivided)
                << tokens << " tokens, " << multiprocessors;
    }
}

INSTANTIATE_TEST_SUITE_P(Types, SplitTest,
                         testing::Values(DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0,
                                         DType::Q5_1, DType::Q4_K, DType::Q6_K),
                         [](const auto& info) { return name(info.param); });

TEST(SplitChunks, NoBitDependsOnWhoAddsThem) {
    for (const AttentionShape& shape : {AttentionShape{2, 2, 128}, {8, 2, 64}, {3, 1, 32}}) {
        const auto of = [&](int multiprocessors, int tokens) {
            return mixes(multiprocessors, shape, tokens);
        };
        expect_rows_alone(of);
        EXPECT_TRUE(of(3, 20) == of(132, 20)) << shape.heads << " heads of " << shape.head_dim;
    }
    simt::set_gpus({simt::Gpu{}});
}

class PartialSumsTest : public SplitTest {};

TEST_P(PartialSumsTest, NoBitDependsOnWhoAddsSums) {
    expect_rows_alone(
        [](int multiprocessors, int tokens) { return sums(multiprocessors, GetParam(), tokens); });
}

// With many tokens the norm adds up the partial sums; where no norm comes next, a kernel does.
TEST(PartialSums, ANormAddsWhatSharesLeave) {
    for (const auto& [type, tokens, expected] :
         {std::tuple(DType::F16, 8, 0), {DType::F16, 20, 3 * 2}, {DType::BF16, 64, 3 * 2}}) {
        std::vector<OpTime> times;
        sums(132, type, tokens, &times);
        long added = 0;
        for (const OpTime& time : times)
            if (time.op == "add_sums") added = time.count;
        EXPECT_EQ(added, expected) << name(type) << ", " << tokens;
    }
    simt::set_gpus({simt::Gpu{}});
}

INSTANTIATE_TEST_SUITE_P(Types, PartialSumsTest, testing::Values(DType::F16, DType::BF16),
                         [](const auto& info) { return name(info.param); });

// Splits for 132 multiprocessors, as an H100 and an H200 have them, in blocks of 128 rows.
cuda::QuantSplitK split_of(int rows, int cols, int tokens = 64,
                           int sum_count = cuda::kMaxSplitBlocks * 8) {
    const cuda::SplitPlan plan{.split = {}, .sum_count = sum_count, .multiprocessors = 132};
    return plan.split_quantised(cuda::tiles_of(rows, cuda::kBlockRows), cols,
                                cuda::token_tiles(tokens));
}
unsigned parts_of(int rows, int cols, int tokens = 64, int sum_count = cuda::kMaxSplitBlocks * 8) {
    const cuda::QuantSplitK split = split_of(rows, cols, tokens, sum_count);
    return split.blocks + unsigned(split.first_parts) - 1;
}

TEST(SplitPlan, DividesWhatWouldKeepMultiprocessorsIdle) {
    EXPECT_EQ(parts_of(4096, 4096), 4u);
    EXPECT_EQ(parts_of(4096, 11008), 11u);
    EXPECT_EQ(parts_of(12288, 4096), 4u);
    EXPECT_EQ(parts_of(4096, 1024), 1u);   // there is one part
    EXPECT_EQ(parts_of(32000, 4096), 1u);  // with 250 blocks nearly each has two
    EXPECT_EQ(parts_of(128256, 4096), 1u);
}

TEST(SplitPlan, TheFirstBlockHasSeveralPartsOfManyTokens) {
    EXPECT_EQ(split_of(4096, 4096).first_parts, 1);       // all blocks run at once
    EXPECT_EQ(split_of(12288, 4096).first_parts, 2);      // 384 parts for 264 blocks
    EXPECT_EQ(split_of(22016, 4096, 64).first_parts, 3);  // the fourth is another block's
    EXPECT_EQ(split_of(12288, 4096, 16).first_parts, 1);
}

TEST(SplitPlan, HasRoom) {
    EXPECT_EQ(parts_of(4096, 4096, 64, 32 * 4 * 8), 4u);
    EXPECT_EQ(parts_of(4096, 4096, 64, 32 * 4 * 8 - 1), 1u);
    EXPECT_EQ(parts_of(4096, 4096, 8, 32 * 4), 4u);
    EXPECT_EQ(parts_of(1 << 20, 1 << 20), 1u);
}

cuda::FloatSplitK split_floats(int rows, int cols, int multiprocessors = 132) {
    const cuda::SplitPlan plan{.split = {}, .sum_count = 0, .multiprocessors = multiprocessors};
    return plan.split_floats(rows, cols);
}

TEST(FloatSplitK, EachMultiprocessorHasAsMuchToDo) {
    EXPECT_EQ(split_floats(128256, 4096).ranges, 132u);
    EXPECT_EQ(split_floats(4096, 4096, 28).ranges, 28u);
    EXPECT_EQ(split_floats(1024, 512).ranges, 8u);  // ranges of eight steps
    EXPECT_EQ(split_floats(16, 32).ranges, 1u);
    EXPECT_EQ(split_floats(1 << 24, 1 << 15).ranges,
              60u);  // more than 63 would not fit into 32 bits
}

TEST(FloatSplitK, AFewMayBeIdleSoThatThereAreFewerPartialSums) {
    EXPECT_EQ(split_floats(4096, 4096).ranges, 128u);  // eight ranges for each of 16 blocks of rows
    EXPECT_EQ(split_floats(4096, 11008).ranges, 128u);
    EXPECT_EQ(split_floats(12288, 4096).ranges, 128u);  // eight ranges for three of 48
    EXPECT_EQ(split_floats(22016, 4096).ranges, 129u);  // three ranges for two of 86
    EXPECT_EQ(split_floats(32000, 4096).ranges, 125u);  // one range for each
}

TEST(FloatSplitK, RangesFollowEachOther) {
    for (const auto& [rows, cols] : {std::pair(4096, 4096),
                                     {12288, 4096},
                                     {4096, 11008},
                                     {128256, 4096},
                                     {300, 72},
                                     {16, 32},
                                     {1 << 24, 1 << 15}})
        for (int multiprocessors : {1, 2, 7, 132, 2000}) {
            const cuda::FloatSplitK split = split_floats(rows, cols, multiprocessors);
            const int ranges = int(split.ranges), all = int(split.all);
            ASSERT_LE(ranges, cuda::kMaxRanges);
            EXPECT_EQ(split.begin(0), 0);
            EXPECT_EQ(split.begin(ranges), all);
            for (int range = 0; range < ranges; ++range) {
                const int begin = split.begin(range), end = split.begin(range + 1);
                ASSERT_GE(end - begin, all / ranges);
                ASSERT_LE(end - begin, all / ranges + 1);
                ASSERT_EQ(split.range_of(begin), range);
                ASSERT_EQ(split.range_of(end - 1), range);
            }
        }
}

}  // namespace
}  // namespace aerie
