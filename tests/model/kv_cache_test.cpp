// The KV cache by itself: how many pages, which memory, and what a compaction moves.
#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "backend/registry.h"

namespace aerie::test {
namespace {

constexpr KvShape kShape{3, 32, DType::F32, 2 * kPageSize + 1};

std::vector<float> row_of(Backend& be, Tensor part, int row) {
    std::vector<float> values(size_t(part.cols));
    be.read(part.row_range(row, 1), values.data());
    return values;
}

TEST(KvShape, PagesHoldAllSlots) {
    for (const auto& [slots, pages] : {std::pair(1, 1), {64, 1}, {65, 2}, {128, 2}, {129, 3}})
        EXPECT_EQ((KvShape{1, 32, DType::F16, slots}).pages(), pages) << slots;
    EXPECT_EQ(kShape.size_bytes(), size_t(3 * 2 * 3 * kPageSize * 32 * 4 + 3 * 4));
}

TEST(KvCache, EveryLayerHasMemoryOfItsOwn) {
    const auto be = open_device("cpu", {1});
    const KvCache cache(*be, kShape);
    ASSERT_EQ(cache.layers(), 3);
    std::vector<float> values(size_t(3 * kPageSize * 32));
    int number = 0;
    for (int i = 0; i < 3; ++i)
        for (const Tensor& part : {cache.layer(i).k, cache.layer(i).v}) {
            EXPECT_EQ(part.rows, 3 * kPageSize);
            EXPECT_EQ(part.cols, 32);
            std::fill(values.begin(), values.end(), float(++number));
            be->write(part, values.data());
        }
    number = 0;
    for (int i = 0; i < 3; ++i)
        for (const Tensor& part : {cache.layer(i).k, cache.layer(i).v}) {
            be->read(part, values.data());
            ++number;
            for (float value : values) ASSERT_EQ(value, float(number)) << "layer " << i;
        }
}

TEST(KvCache, PagesBeginInOrder) {
    const auto be = open_device("cpu", {1});
    KvCache cache(*be, kShape);
    std::vector<int32_t> pages(3);
    be->read(cache.layer(2).page_table, pages.data());
    EXPECT_EQ(pages, (std::vector<int32_t>{0, 1, 2}));
    const std::vector<int32_t> permuted = {2, 0, 1};
    cache.set_pages(permuted);
    be->read(cache.layer(0).page_table, pages.data());
    EXPECT_EQ(pages, permuted);
}

// Slots 62, 63 and 66 move to 61, 62 and 63, across a page border and in permuted pages.
TEST(KvCache, CompactsEveryLayerThroughThePages) {
    const auto be = open_device("cpu", {1});
    KvCache cache(*be, kShape);
    const std::vector<int32_t> pages = {2, 0, 1};
    const std::vector<KvMove> moves = {{0, 62, 61}, {0, 63, 62}, {0, 66, 63}};
    cache.set_pages(pages);
    const auto line = [&](int slot) {
        return pages[size_t(slot / kPageSize)] * kPageSize + slot % kPageSize;
    };
    for (int i = 0; i < cache.layers(); ++i)
        for (int slot = 60; slot < 70; ++slot) {
            const std::vector<float> k(32, float(100 * i + slot)), v(32, float(-100 * i - slot));
            be->write(cache.layer(i).k.row_range(line(slot), 1), k.data());
            be->write(cache.layer(i).v.row_range(line(slot), 1), v.data());
        }
    const Buffer memory = be->allocate(sizeof(KvMove) * moves.size());
    const Tensor block = dense(memory.get(), DType::I32, 3, kKvMoveInts);
    be->write(block, moves.data());
    cache.compact(block);
    for (int i = 0; i < cache.layers(); ++i)
        for (const auto& [slot, held] :
             {std::pair(60, 60), {61, 62}, {62, 63}, {63, 66}, {64, 64}}) {
            EXPECT_EQ(row_of(*be, cache.layer(i).k, line(slot)),
                      std::vector<float>(32, float(100 * i + held)));
            EXPECT_EQ(row_of(*be, cache.layer(i).v, line(slot)),
                      std::vector<float>(32, float(-100 * i - held)));
        }
}

}  // namespace
}  // namespace aerie::test
