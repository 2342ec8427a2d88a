// The KV cache by itself: the number of its pages, its memory, and the rows that a compaction
// moves.
#include "model/kv_pool.h"

#include <gtest/gtest.h>

#include <climits>
#include <numeric>
#include <set>

#include "backend/registry.h"
#include "core/error.h"

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

// Sizes at which the number of rows exceeds an int.
TEST(KvShape, CountsRowsBeyondAnInt) {
    constexpr int kContext = 1 << 24;
    const KvShape large{4, 64, DType::F16, kContext + 63, 256};
    EXPECT_EQ(large.rows(), (int64_t(1) << 32) + 256 * 64);
    const size_t pages = size_t(large.pages());
    EXPECT_EQ(large.size_bytes(), size_t(large.rows()) * 64 * 2 * 4 * 2 + 256 * pages * 4);
    EXPECT_THROW(large.check_rows(), Error);
    EXPECT_EQ((KvShape{1, 64, DType::F16, INT_MAX, 1}).rows(), int64_t(INT_MAX) + 1);
    EXPECT_EQ((KvShape{1024, 1 << 20, DType::F32, INT_MAX, INT_MAX}).size_bytes(), SIZE_MAX);
    const KvShape most{1, 64, DType::F16, kContext - 64, 128};
    EXPECT_NO_THROW(most.check_rows());
}

// The pool itself refuses such sizes before it asks for memory.
TEST(KvPool, RefusesMoreRowsThanAnIntCounts) {
    const auto be = open_device("cpu", {1});
    for (const KvShape& shape :
         {KvShape{1, 16, DType::F16, 1 << 24, 256}, KvShape{0, 16, DType::F16, 1 << 24, 129},
          KvShape{1, 16, DType::F16, INT_MAX, 1}}) {
        try {
            const KvPool pool(*be, shape);
            FAIL() << shape.sequences;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("smaller context or fewer sequences"),
                      std::string::npos)
                << error.what();
        }
    }
}

TEST(KvPool, EveryLayerHasMemoryOfItsOwn) {
    const auto be = open_device("cpu", {1});
    const KvPool cache(*be, kShape);
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

std::vector<int32_t> table_row(Backend& be, const KvPool& pool, int sequence) {
    const Tensor table = pool.layer(0).page_table;
    std::vector<int32_t> pages(size_t(table.cols));
    be.read(table.row_range(sequence, 1), pages.data());
    return pages;
}

TEST(KvPool, PagesAreHeldInOrderAsATextGrows) {
    const auto be = open_device("cpu", {1});
    KvPool pool(*be, kShape);
    KvPages pages = pool.begin();
    EXPECT_EQ(pool.free_pages(), 3);
    pages.hold(1);
    EXPECT_EQ(pool.free_pages(), 2);
    pages.hold(kPageSize);
    EXPECT_EQ(pool.free_pages(), 2);
    pages.hold(kShape.slots);
    EXPECT_EQ(table_row(*be, pool, pages.sequence()), (std::vector<int32_t>{0, 1, 2}));
    EXPECT_THROW(pages.hold(3 * kPageSize + 1), Error);
    EXPECT_THROW(pool.begin(), Error) << "one sequence is all there is room for";
    EXPECT_EQ(pages.truncate(kPageSize + 5), kPageSize + 5);
    EXPECT_EQ(pool.free_pages(), 1);
    pages = KvPages(std::move(pages));
    EXPECT_EQ(pages.truncate(0), 0);
    const std::vector<int32_t> order = {2, 0, 1};
    pool.order_free_pages(order);
    pages.hold(kShape.slots);
    EXPECT_EQ(table_row(*be, pool, pages.sequence()), order);
}

// A fork inside a page has the rows below it, in every layer, in a page of its own.
TEST(KvPool, AForkCopiesTheRowsOfItsLastPage) {
    const auto be = open_device("cpu", {1});
    KvShape shape = kShape;
    shape.sequences = 2;
    KvPool pool(*be, shape);
    KvPages first = pool.begin();
    first.hold(2 * kPageSize);
    const auto line = [&](const KvPages& pages, int row) {
        return table_row(*be, pool, pages.sequence())[1] * kPageSize + row;
    };
    float next = 0;
    for (int i = 0; i < pool.layers(); ++i)
        for (const Tensor& part : {pool.layer(i).k, pool.layer(i).v})
            for (int row = 0; row < kPageSize; ++row) {
                std::vector<float> values(size_t(part.cols));
                std::iota(values.begin(), values.end(), next += 100);
                be->write(part.row_range(line(first, row), 1), values.data());
            }
    const KvPages second = first.fork(kPageSize + 9);
    ASSERT_NE(line(first, 0), line(second, 0));
    for (int i = 0; i < pool.layers(); ++i)
        for (const Tensor& part : {pool.layer(i).k, pool.layer(i).v})
            for (int row = 0; row < 9; ++row)
                EXPECT_EQ(row_of(*be, part, line(second, row)), row_of(*be, part, line(first, row)))
                    << "layer " << i << ", row " << row;
}

TEST(KvPool, SequencesShareWholePages) {
    const auto be = open_device("cpu", {1});
    KvShape shape = kShape;
    shape.sequences = 3;
    KvPool pool(*be, shape);
    KvPages first = pool.begin();
    first.hold(2 * kPageSize);
    {
        KvPages second = first.fork(kPageSize + 9);
        EXPECT_NE(second.sequence(), first.sequence());
        EXPECT_EQ(second.slots(), 2 * kPageSize);
        EXPECT_EQ(pool.free_pages(), 9 - 3);
        EXPECT_EQ(table_row(*be, pool, second.sequence()), (std::vector<int32_t>{0, 2, 0}));
        // Shared pages must not be written: a sequence that is cut inside one loses the rest of it.
        EXPECT_EQ(first.truncate(5), 0);
        EXPECT_EQ(pool.free_pages(), 9 - 2);
        first.hold(5);
        EXPECT_NE(table_row(*be, pool, first.sequence())[0], 0);
        const KvPages third = second.fork(2 * kPageSize);
        EXPECT_THROW(pool.begin(), Error);
    }
    EXPECT_EQ(pool.free_pages(), 9 - 1);
    EXPECT_EQ(first.truncate(5), 5) << "nobody shares it";
}

// Slots 62, 63 and 66 move to 61, 62 and 63, across a page border and in permuted pages.
TEST(KvPool, CompactsEveryLayerThroughThePages) {
    const auto be = open_device("cpu", {1});
    KvPool cache(*be, kShape);
    const std::vector<int32_t> pages = {2, 0, 1};
    const std::vector<KvMove> moves = {{0, 62, 61}, {0, 63, 62}, {0, 66, 63}};
    cache.order_free_pages(pages);
    KvPages held = cache.begin();
    held.hold(kShape.slots);
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
