// Which views overlap, and that a barrier stands only between commands that need one.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "vulkan/backend.h"
#include "vulkan/device.h"
#include "vulkan/test_device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::vulkan {
namespace {

Tensor view(Memory& memory, size_t offset, int rows, int cols, int stride,
            DType type = DType::F32) {
    return {&memory, offset, type, rows, cols, stride};
}

bool overlaps_both_ways(const Tensor& a, const Tensor& b) {
    EXPECT_EQ(overlap(a, b), overlap(b, a));
    return overlap(a, b);
}

TEST(Overlap, OfRows) {
    Memory memory;
    const Tensor all = view(memory, 0, 8, 16, 16);
    EXPECT_TRUE(overlaps_both_ways(all, all));
    EXPECT_TRUE(overlaps_both_ways(all, all.row_range(3, 1)));
    EXPECT_TRUE(overlaps_both_ways(all.row_range(0, 4), all.row_range(3, 5)));
    EXPECT_FALSE(overlaps_both_ways(all.row_range(0, 4), all.row_range(4, 4)));
    EXPECT_FALSE(overlaps_both_ways(all, all.row_range(4, 0)));
}

TEST(Overlap, OfColumns) {
    Memory memory;
    const Tensor left = view(memory, 0, 8, 16, 64), right = view(memory, 64, 8, 48, 64);
    EXPECT_FALSE(overlaps_both_ways(left, right));
    EXPECT_TRUE(overlaps_both_ways(left, view(memory, 60, 8, 49, 64)));
    EXPECT_FALSE(overlaps_both_ways(left, view(memory, 64, 7, 48, 64)));
    // Columns of rows further down: their offset differs by whole rows.
    EXPECT_FALSE(overlaps_both_ways(left, view(memory, 2 * 256 + 64, 3, 48, 64)));
    EXPECT_TRUE(overlaps_both_ways(left, view(memory, 2 * 256 + 60, 3, 2, 64)));
    // Rows of as many bytes, in another type.
    EXPECT_FALSE(overlaps_both_ways(left, view(memory, 64, 8, 96, 128, DType::F16)));
    EXPECT_TRUE(overlaps_both_ways(left, view(memory, 62, 8, 97, 128, DType::F16)));
}

// Rows may begin anywhere: their columns may lie on both sides of a multiple of the stride.
TEST(Overlap, OfColumnsAnywhere) {
    Memory memory;
    for (size_t begin = 0; begin < 1024; begin += 4) {
        const Tensor left = view(memory, begin, 4, 16, 64);
        EXPECT_FALSE(overlaps_both_ways(left, view(memory, begin + 64, 4, 48, 64))) << begin;
        EXPECT_TRUE(overlaps_both_ways(left, view(memory, begin + 60, 4, 4, 64))) << begin;
        EXPECT_TRUE(overlaps_both_ways(left, view(memory, begin + 64, 4, 49, 64))) << begin;
    }
}

// If strides differ, all bytes from the first to the last count.
TEST(Overlap, OfOtherStrides) {
    Memory memory;
    const Tensor left = view(memory, 0, 8, 16, 64);
    EXPECT_TRUE(overlaps_both_ways(left, view(memory, 64, 8, 16, 32)));
    EXPECT_TRUE(overlaps_both_ways(left, view(memory, 64, 1, 1, 1)));
    EXPECT_FALSE(overlaps_both_ways(left, view(memory, 7 * 256 + 64, 8, 16, 32)));
}

// A view with rows that reach across the row boundaries of the other view.
TEST(Overlap, OfRowsThatWrap) {
    Memory memory;
    const Tensor left = view(memory, 0, 8, 16, 64);
    EXPECT_TRUE(overlaps_both_ways(left, view(memory, 64, 7, 64, 64)));
    EXPECT_TRUE(overlaps_both_ways(left, view(memory, 64 + 256, 3, 64, 64)));
}

TEST(Overlap, OfOtherMemory) {
    Memory memory, other;
    EXPECT_FALSE(overlaps_both_ways(view(memory, 0, 8, 16, 16), view(other, 0, 8, 16, 16)));
}

TEST(Hazards, NeedAWriteAndForgetAtABarrier) {
    Memory memory;
    const Tensor a = view(memory, 0, 1, 16, 16), b = view(memory, 64, 1, 16, 16);
    Hazards hazards;
    hazards.add(reads(a));
    EXPECT_FALSE(hazards.conflicts(reads(a)));
    EXPECT_TRUE(hazards.conflicts(writes(a)));
    EXPECT_FALSE(hazards.conflicts(writes(b)));
    hazards.add(writes(b));
    EXPECT_TRUE(hazards.conflicts(reads(b)));
    EXPECT_TRUE(hazards.conflicts(writes(b)));
    hazards.barrier();
    EXPECT_FALSE(hazards.conflicts(writes(a)));
    EXPECT_FALSE(hazards.conflicts(reads(b)));
}

class Barriers : public testing::Test {
  protected:
    void SetUp() override {
        if (!has_test_device()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
        backend_ = open_test_device({});
        memory_ = backend_->allocate(kTensors * 64 * sizeof(float));
        backend_->sync();
    }

    // Tensor i: 4 rows of 16. The tensors lie one behind the other.
    Tensor tensor(size_t i) { return view(*memory_, i * 256, 4, 16, 16); }

    CommandCounts counts() { return static_cast<VulkanBackend&>(*backend_).queue().counts(); }

    // The number of barriers between the dispatches that `ops` records.
    template <class Ops>
    long barriers_of(long dispatches, const Ops& ops) {
        backend_->sync();
        const CommandCounts before = counts();
        ops();
        backend_->sync();
        EXPECT_EQ(counts().dispatches - before.dispatches, dispatches);
        EXPECT_EQ(counts().submissions - before.submissions, 1);
        return counts().barriers - before.barriers;
    }

    static constexpr size_t kTensors = 8;
    std::unique_ptr<Backend> backend_;
    Buffer memory_;
};

TEST_F(Barriers, NoneBetweenIndependentOps) {
    EXPECT_EQ(barriers_of(3,
                          [&] {
                              backend_->run(Copy{tensor(1), tensor(0)});
                              backend_->run(Copy{tensor(2), tensor(0)});
                              backend_->run(Add{tensor(5), tensor(3), tensor(4)});
                          }),
              0);
}

TEST_F(Barriers, OneBeforeEachThatDepends) {
    EXPECT_EQ(barriers_of(3,
                          [&] {
                              backend_->run(Copy{tensor(1), tensor(0)});
                              backend_->run(Copy{tensor(2), tensor(1)});  // reads what was written
                              backend_->run(Copy{tensor(1), tensor(3)});  // writes what was read
                          }),
              2);
    EXPECT_EQ(barriers_of(2,
                          [&] {
                              backend_->run(Copy{tensor(1), tensor(0)});
                              backend_->run(Copy{tensor(1), tensor(2)});  // writes what was written
                          }),
              1);
}

TEST_F(Barriers, OneForAllThatCameBefore) {
    EXPECT_EQ(barriers_of(4,
                          [&] {
                              backend_->run(Copy{tensor(1), tensor(0)});
                              backend_->run(Copy{tensor(3), tensor(2)});
                              backend_->run(Copy{tensor(4), tensor(1)});
                              backend_->run(Copy{tensor(5), tensor(3)});
                          }),
              1);
}

TEST_F(Barriers, NoneBetweenColumnsOfTheSameRows) {
    Tensor left = tensor(1), right = tensor(1);
    left.cols = right.cols = 8;
    right.offset_bytes += 8 * sizeof(float);
    Tensor half = tensor(0);
    half.cols = 8;
    EXPECT_EQ(barriers_of(2,
                          [&] {
                              backend_->run(Copy{left, half});
                              backend_->run(Copy{right, half});
                          }),
              0);
}

// Each layer has memory of its own.
TEST_F(Barriers, NoneBetweenTheLayersOfACompaction) {
    const Buffer cache = backend_->allocate(6 * kPageSize * 16 * sizeof(float));
    const Buffer indices = backend_->allocate(64 * sizeof(int32_t));
    std::vector<KvLayer> layers(3);
    for (size_t i = 0; i < 6; ++i)
        (i % 2 ? layers[i / 2].v : layers[i / 2].k) =
            view(*cache, i * kPageSize * 64, kPageSize, 16, 16);
    for (KvLayer& layer : layers) layer.page_table = dense(indices.get(), DType::I32, 1, 1);
    const KvMove move{0, 9, 3};
    Tensor moves = dense(indices.get(), DType::I32, 1, kKvMoveInts);
    moves.offset_bytes = 128;
    backend_->write(moves, &move);
    EXPECT_EQ(barriers_of(3, [&] { backend_->run(KvCompact{layers, moves}); }), 0);
}

// A replay has the barriers that were recorded.
TEST_F(Barriers, OfAReplay) {
    for (int time = 0; time < 3; ++time)
        EXPECT_EQ(barriers_of(2,
                              [&] {
                                  backend_->replay(1, [&] {
                                      backend_->run(Copy{tensor(1), tensor(0)});
                                      backend_->run(Copy{tensor(2), tensor(1)});
                                  });
                              }),
                  1);
}

}  // namespace
}  // namespace aerie::vulkan
