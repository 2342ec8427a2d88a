// rope_append, attention and kv_compact: against doubles, and the same bits for the same history
// wherever it lies in the cache, however it came there and whatever runs beside it.
#include "ops/attention_fixture.h"

namespace aerie {

using namespace reference;

namespace {

constexpr AttentionShape kShapes[] = {{4, 2, 64}, {3, 3, 16}, {8, 1, 48}, {4, 4, 128}, {2, 1, 256}};

TEST_P(AttentionTest, MatchesDoubles) {
    for (const AttentionShape& shape : kShapes)
        for (DType type : {DType::F32, DType::F16}) {
            use(shape);
            const Matrix qkv = random_qkv(131, 1);
            const Matrix got = prefill(qkv, 64, make_cache(shape, type, plain_pages()));
            // In f16 a key may round the other way than its double.
            EXPECT_LE(nmse(got, expected(qkv, type)), type == DType::F16 ? 1e-8 : 1e-11)
                << shape.heads << " heads of " << shape.head_dim << ", " << name(type);
        }
}

TEST_P(AttentionTest, TakesAnyScale) {
    use({4, 2, 64});
    const Matrix qkv = random_qkv(70, 5);
    for (float scale : {0.5f, 0.0078125f, 0.03f}) {
        scale_ = scale;
        const Matrix got = prefill(qkv, 64, make_cache(shape_, DType::F32, plain_pages()));
        EXPECT_LE(nmse(got, expected(qkv, DType::F32)), 1e-11) << scale;
    }
}

// More query heads per kv head than one task of the CPU takes.
TEST_P(AttentionTest, TakesAnyNumberOfQueryHeads) {
    use({300, 1, 16});
    backend_->reserve({.heads = 300, .queries = 300});
    const Matrix qkv = random_qkv(5, 9);
    const Matrix got = prefill(qkv, 5, make_cache(shape_, DType::F32, plain_pages()));
    EXPECT_LE(nmse(got, expected(qkv, DType::F32)), 1e-11);
}

TEST_P(AttentionTest, RotatesInPlace) {
    use({4, 2, 64});
    const Matrix qkv = random_qkv(3, 2);
    const Cache cache = make_cache(shape_, DType::F32, plain_pages());
    const std::vector<Row> rows = {{.position = 5, .slot = 5, .prefix = 5},
                                   {.position = 100, .slot = 100, .prefix = 100},
                                   {.position = 383, .slot = 383, .prefix = 383}};
    Array x = upload(qkv);
    backend_->run(RopeAppend{x, rope_, upload(rows), shape_, cache.layer});
    EXPECT_LE(nmse(download(x), reference::rope(qkv, table_, {5, 100, 383}, shape_)), 1e-12);
}

TEST_P(AttentionTest, ChunksOfAPromptDoNotMatter) {
    for (DType type : {DType::F32, DType::F16})
        for (bool quantised : {false, true}) {
            use({4, 2, 64});
            quantised_ = quantised;
            const Matrix qkv = random_qkv(140, 3);
            const Matrix whole = prefill(qkv, 140, make_cache(shape_, type, plain_pages()));
            for (int step : {1, 7, 64, 65})
                EXPECT_TRUE(
                    same_bits(whole, prefill(qkv, step, make_cache(shape_, type, plain_pages()))))
                    << "chunks of " << step;
        }
}

TEST_P(AttentionTest, PagesDoNotMatter) {
    use({4, 2, 64});
    const Matrix qkv = random_qkv(140, 4);
    Indices pages(2, kPages);
    pages.data = {7, 3, 0, 9, 1, 12, 5, 2, 11, 4, 6, 8};
    const Cache cache = make_cache(shape_, DType::F16, pages);
    const Matrix plain = prefill(qkv, 20, make_cache(shape_, DType::F16, plain_pages()));
    EXPECT_TRUE(same_bits(plain, prefill(qkv, 20, cache)));
    // A second sequence beside it, in the same passes.
    for (int p = 0; p < qkv.rows; ++p) {
        Matrix both(2, qkv.cols);
        std::copy_n(qkv[p], qkv.cols, both[0]);
        std::copy_n(qkv[139 - p], qkv.cols, both[1]);
        std::vector<Row> rows(2, chain(p, 1)[0]);
        rows[0].sequence = 1;
        const Matrix got = pass(both, rows, cache);
        ASSERT_TRUE(same_bits(got[0], plain[p], got.cols)) << p;
    }
}

// Trees behind `committed` positions cross a chunk border, begin at one, or lie inside a chunk.
TEST_P(AttentionTest, TreesEqualChains) {
    struct Tree {
        AttentionShape shape;
        int committed;
        std::vector<int> slots;
    };
    const std::vector<int> in_order{0, 1, 2, 3, 4, 5, 6, 7, 8},
        scattered{8, 3, 1, 40, 70, 2, 0, 5, 4};
    for (const auto& [shape, committed, slots] :
         {Tree{{4, 2, 64}, kCommitted, in_order}, Tree{{4, 2, 64}, kCommitted, scattered},
          Tree{{4, 2, 64}, 64, scattered}, Tree{{4, 4, 128}, 70, scattered},
          Tree{{3, 3, 16}, 1, in_order}, Tree{{8, 1, 48}, 100, scattered}}) {
        SCOPED_TRACE(std::to_string(shape.heads) + " heads behind " + std::to_string(committed));
        use(shape);
        const Matrix text = random_qkv(committed, 5), nodes = random_qkv(kNodes, 6);
        const Cache cache = make_cache(shape_, DType::F16, plain_pages());
        prefill(text, 64, cache);
        const Matrix got = pass(nodes, tree_rows(slots, committed), cache);
        for (int n = 0; n < kNodes; ++n) {
            Matrix chain_text = text;
            std::vector<int> path;
            for (int a = n; a >= 0; a = kParents[a]) path.insert(path.begin(), a);
            for (int a : path)
                chain_text.data.insert(chain_text.data.end(), nodes[a], nodes[a] + nodes.cols);
            chain_text.rows += int(path.size());
            const Matrix want =
                prefill(chain_text, 64, make_cache(shape_, DType::F16, plain_pages()));
            ASSERT_TRUE(same_bits(got[n], want[want.rows - 1], got.cols)) << "node " << n;
        }
    }
}

// With one row, attention may leave its output in another form for the matmul that reads it
// (Consumers in ops.h): the bits are the same.
TEST_P(AttentionTest, LeavesARowToItsReader) {
    constexpr int kOutputs = 40;
    for (const AttentionShape& shape :
         {AttentionShape{4, 4, 64}, {4, 2, 128}, {8, 2, 32}, {8, 1, 64}, {2, 2, 48}, {2, 1, 256}}) {
        use(shape);
        const int columns = shape.heads * shape.head_dim;
        const Matrix text = random_qkv(330, 6);
        const Cache cache = make_cache(shape, DType::F16, plain_pages());
        prefill(text, 64, cache);
        for (DType type : {DType::F16, DType::BF16, DType::Q8_0})
            for (int position : {0, 63, 329}) {
                SCOPED_TRACE(std::string(name(type)) + ", heads of " +
                             std::to_string(shape.head_dim) + ", at " + std::to_string(position));
                if (type == DType::Q8_0 && columns % kGroup != 0) continue;
                const auto weight =
                    upload_weight(reference::random_matrix(kOutputs, columns, 7), type);
                const Array x = upload(rows_of(text, position, 1));
                const Rows block = upload(chain(position, 1));
                backend_->run(RopeAppend{x, rope_, block, shape_, cache.layer});
                const auto result = [&](const Consumers& consumers) {
                    const Array mixed = type == DType::Q8_0 ? poisoned_activations(1, columns)
                                                            : poisoned(1, columns);
                    const Array out = poisoned(1, kOutputs);
                    for (int i = 0; i < 2; ++i) {
                        backend_->run(
                            Attention{mixed, x, block, shape_, cache.layer, scale_, 0, consumers});
                        backend_->run(Matmul{out, mixed, *weight});
                    }
                    return download(out);
                };
                ASSERT_TRUE(same_bits(result({}), result({weight.get()})));
            }
    }
}

TEST_P(AttentionTest, CompactingKeepsBits) {
    use({4, 2, 64});
    const Matrix text = random_qkv(kCommitted, 5), nodes = random_qkv(kNodes, 6);
    const Matrix next = random_qkv(1, 7);
    const Cache cache = make_cache(shape_, DType::F16, plain_pages());
    prefill(text, 64, cache);
    pass(nodes, tree_rows({0, 1, 2, 3, 4, 5, 6, 7, 8}), cache);
    std::vector<KvMove> moves;
    for (int node : {0, 1, 3, 5})
        moves.push_back({0, kCommitted + node, kCommitted + int(moves.size())});
    backend_->run(KvCompact{{&cache.layer, 1}, upload(moves)});
    const Matrix got = pass(next, chain(kCommitted + 4, 1), cache);

    Matrix whole = text;
    for (int n : {0, 1, 3, 5}) whole.data.insert(whole.data.end(), nodes[n], nodes[n] + nodes.cols);
    whole.data.insert(whole.data.end(), next.data.begin(), next.data.end());
    whole.rows += 5;
    const Matrix want = prefill(whole, 64, make_cache(shape_, DType::F16, plain_pages()));
    EXPECT_TRUE(same_bits(got[0], want[want.rows - 1], got.cols));
}

TEST_P(AttentionTest, PaddingRowsWriteNothing) {
    use({4, 2, 64});
    const Matrix qkv = random_qkv(3, 8);
    std::vector<Row> rows = chain(0, 3);
    rows[1] = {.token = -7, .position = -1, .sequence = -5, .slot = -1, .prefix = -1};
    rows[2] = {.position = 1, .slot = 1, .prefix = 1};
    const Matrix got = pass(qkv, rows, make_cache(shape_, DType::F16, plain_pages()));
    Matrix without(2, qkv.cols);
    std::copy_n(qkv[0], qkv.cols, without[0]);
    std::copy_n(qkv[2], qkv.cols, without[1]);
    const Matrix want = prefill(without, 2, make_cache(shape_, DType::F16, plain_pages()));
    EXPECT_TRUE(same_bits(got[0], want[0], got.cols));
    EXPECT_TRUE(same_bits(got[2], want[1], got.cols));
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
