// Attention of many rows at once, in floats and quantised: each row has the bits that it has alone.
#include <random>

#include "ops/attention_fixture.h"

namespace aerie {

using namespace reference;

namespace {

class AttentionRowsTest : public AttentionTest {
  protected:
    // Runs a test with float output, and with quantised output if a row has whole groups.
    template <class Test>
    void with_both(const AttentionShape& shape, const Test& test) {
        use(shape);
        for (bool quantised : {false, true}) {
            if (quantised && shape.heads * shape.head_dim % kGroup != 0) continue;
            quantised_ = quantised;
            SCOPED_TRACE(std::to_string(shape.heads) + " heads of " +
                         std::to_string(shape.head_dim) + (quantised ? ", quantised" : ""));
            test();
        }
    }
    Cache f16_cache() { return make_cache(shape_, DType::F16, plain_pages()); }

    // The output of these rows behind the text, as its last row.
    Matrix last_of(Matrix text, const Matrix& more, const std::vector<int>& rows) {
        for (int r : rows) text.data.insert(text.data.end(), more[r], more[r] + more.cols);
        text.rows += int(rows.size());
        const Matrix all = prefill(text, 64, f16_cache());
        return rows_of(all, all.rows - 1, 1);
    }
    // Makes a row's values infinite in f16.
    void overflow(Matrix& qkv, int row) const {
        const int values = (shape_.heads + shape_.kv_heads) * shape_.head_dim;
        for (int i = values; i < qkv.cols; ++i) qkv[row][i] = i % 2 ? 1e30f : -1e30f;
    }
};

// A random tree with slots in random order; its first `depth` nodes form a chain.
struct RandomTree {
    std::vector<int> parents;
    std::vector<Row> rows;

    RandomTree(int nodes, int depth, int committed, unsigned seed) : rows(size_t(nodes)) {
        std::mt19937 random(seed);
        std::vector<int> slots(size_t(nodes), 0);
        std::iota(slots.begin(), slots.end(), 0);
        std::shuffle(slots.begin(), slots.end(), random);
        for (int n = 0; n < nodes; ++n) {
            int parent = n - 1;
            if (n >= depth) do
                    parent = int(random() % unsigned(n));
                while (rows[size_t(parent)].depth() + 1 >= depth);
            parents.push_back(parent);
            Row& row = rows[size_t(n)];
            if (parent < 0) {
                row.position = row.prefix = committed;
            } else {
                row = rows[size_t(parent)];
                row.path[row.depth()] = row.slot;
                ++row.position;
            }
            row.slot = committed + slots[size_t(n)];
        }
    }
    std::vector<int> path(int node) const {
        std::vector<int> path;
        for (int a = node; a >= 0; a = parents[size_t(a)]) path.insert(path.begin(), a);
        return path;
    }
};

// Paths of 1 to 20 positions, which cross a chunk border, begin at one, or lie inside a chunk.
TEST_P(AttentionRowsTest, OfATree) {
    struct Case {
        AttentionShape shape;
        int nodes, depth, committed;
    };
    for (const auto& [shape, nodes, depth, committed] :
         {Case{{2, 2, 128}, 60, 7, 108}, Case{{2, 2, 128}, 60, 20, 50},
          Case{{8, 2, 32}, 33, 12, 64}, Case{{6, 2, 64}, 26, 5, 1}, Case{{8, 1, 16}, 17, 17, 125},
          Case{{3, 3, 80}, 11, 2, 44}})
        with_both(shape, [&] {
            const RandomTree tree(nodes, depth, committed, 3);
            const Matrix text = random_qkv(committed, 5), qkv = random_qkv(nodes, 6);
            const Cache cache = f16_cache();
            prefill(text, 64, cache);
            const Matrix got = pass(qkv, tree.rows, cache);
            for (int node : {0, 1, depth - 1, nodes / 2, nodes - 2, nodes - 1})
                ASSERT_TRUE(same_bits(got[node], last_of(text, qkv, tree.path(node))[0], got.cols))
                    << "node " << node << " behind " << committed;
        });
}

// A value beyond f16's range is infinite, and times 0 it is NaN: rows that do not attend to it must
// not be affected.
TEST_P(AttentionRowsTest, KeepTheirInfinities) {
    for (const AttentionShape& shape : {AttentionShape{2, 2, 128}, {4, 2, 32}})
        with_both(shape, [&] {
            constexpr int kNodes = 24, kBad = 13;
            const RandomTree tree(kNodes, 6, 70, 4);
            const Matrix text = random_qkv(70, 5);
            Matrix qkv = random_qkv(kNodes, 6);
            overflow(qkv, kBad);
            const auto sees_it = [&](int node) {
                const std::vector<int> path = tree.path(node);
                return std::find(path.begin(), path.end(), kBad) != path.end();
            };
            const Cache cache = f16_cache();
            prefill(text, 64, cache);
            const Matrix of_tree = pass(qkv, tree.rows, cache);
            for (int node = 0; node < kNodes; ++node) {
                if (sees_it(node)) continue;
                const Matrix alone = last_of(text, qkv, tree.path(node));
                ASSERT_TRUE(same_bits(of_tree[node], alone[0], alone.cols)) << "node " << node;
            }
            // The same in a prompt.
            Matrix prompt = random_qkv(40, 7);
            const Matrix want = prefill(prompt, 40, f16_cache());
            overflow(prompt, 29);
            const Matrix of_prompt = prefill(prompt, 40, f16_cache());
            EXPECT_TRUE(same_bits(of_prompt[0], want[0], 29 * want.cols));
            EXPECT_FALSE(same_bits(of_prompt[29], want[29], want.cols));
        });
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionRowsTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
