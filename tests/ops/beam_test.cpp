// beam: one level of growth by hand, ties, NaN, a given selection, and growing from the root.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/device_test.h"

namespace aerie {

using namespace reference;

namespace {

class BeamTest : public DeviceTest {
  protected:
    struct Outcome {
        std::vector<Candidate> table;
        std::vector<int32_t> parent_row, frontier;
        std::vector<Row> next;
    };

    // The numbers of a step without its tensors, which run() makes.
    static Beam step(int table_offset, int next_slot = 0) {
        Beam out;
        out.table_offset = table_offset;
        out.next_slot = next_slot;
        return out;
    }

    Outcome run(Beam step, const Indices& ids, const Matrix& log_probs,
                const std::vector<Row>& rows, const std::vector<int32_t>& frontier,
                const std::vector<Candidate>& table, int width,
                const std::vector<int32_t>& selection = {}) {
        const Array id_array = upload(ids), log_prob_array = upload(log_probs);
        Indices frontier_in(1, kMaxFrontier, -1);
        std::copy(frontier.begin(), frontier.end(), frontier_in[0]);
        Array frontier_array = upload(frontier_in),
              parent_row = poisoned_indices(1, std::max(width, 1));
        Array chosen;
        if (!selection.empty()) {
            Indices index(1, width);
            index.data = selection;
            chosen = upload(index);
        }
        const int capacity = int(table.size());
        Buffer memory = backend_->allocate(table.size() * sizeof(Candidate));
        step.table = dense(memory.get(), DType::I32, capacity, kCandidateInts);
        backend_->write(step.table, table.data());
        step.ids = id_array;
        step.log_probs = log_prob_array;
        step.rows = upload(rows);
        step.frontier = frontier_array;
        step.selection = chosen;
        step.parent_row = parent_row;
        step.next = upload(std::vector<Row>(size_t(std::max(width, 1)))).range(0, width);
        backend_->run(step);

        Outcome out;
        out.table.resize(table.size());
        backend_->read(step.table, out.table.data());
        out.parent_row = download_indices(parent_row).data;
        out.frontier = download_indices(frontier_array).data;
        out.next.resize(size_t(width));
        backend_->read(step.next.block, out.next.data());
        return out;
    }

    static Indices two_by_three() {
        Indices ids(2, 3);
        ids.data = {10, 11, 12, 20, 21, 22};
        return ids;
    }
    static Matrix log_probs(std::initializer_list<float> values) {
        Matrix m(2, 3);
        std::copy(values.begin(), values.end(), m.data.begin());
        return m;
    }
    // Two rows under a root at position 9, in slots 10 and 11.
    static std::vector<Row> two_rows() {
        Row a{.token = 1, .position = 11, .sequence = 3, .slot = 11, .prefix = 10};
        a.path[0] = 10;
        Row b = a;
        b.token = 2;
        b.slot = 12;
        return {a, b};
    }
};

TEST_P(BeamTest, AddsValuesAndSelectsTheBest) {
    std::vector<Candidate> table(12);
    table[2].value = -1.0f;
    table[0].value = -0.5f;
    const Outcome out =
        run(step(4, 6), two_by_three(), log_probs({-0.1f, -2, -3, -0.2f, -0.6f, -9}), two_rows(),
            {2, 0}, table, 3);
    const float values[] = {-1.1f, -3, -4, -0.7f, -1.1f, -9.5f};
    for (int i = 0; i < 6; ++i) {
        const Candidate& c = out.table[size_t(4 + i)];
        EXPECT_EQ(c.token, two_by_three().data[size_t(i)]);
        EXPECT_EQ(c.parent, i < 3 ? 2 : 0);
        EXPECT_FLOAT_EQ(c.value, values[i]);
    }
    EXPECT_FLOAT_EQ(out.table[7].log_prob, -0.2f);
    // -0.7, then the two at -1.1: the first candidate wins the tie.
    EXPECT_EQ(std::vector<int>(out.frontier.begin(), out.frontier.begin() + 3),
              (std::vector<int>{7, 4, 8}));
    EXPECT_EQ(out.parent_row, (std::vector<int>{1, 0, 1}));
    const int tokens[] = {20, 10, 21}, parent_slots[] = {12, 11, 12};
    for (int i = 0; i < 3; ++i) {
        const Row& row = out.next[size_t(i)];
        EXPECT_EQ(row.token, tokens[i]);
        EXPECT_EQ(row.position, 12);
        EXPECT_EQ(row.sequence, 3);
        EXPECT_EQ(row.prefix, 10);
        EXPECT_EQ(row.slot, 10 + 6 + i);
        EXPECT_EQ(row.path[0], 10);
        EXPECT_EQ(row.path[1], parent_slots[i]);
    }
}

TEST_P(BeamTest, WithoutSumsRanksByLogProb) {
    std::vector<Candidate> table(12);
    table[2].value = -100;
    Beam no_sums = step(4);
    no_sums.sum_values = false;
    const Outcome out = run(no_sums, two_by_three(), log_probs({-0.1f, -2, -3, -0.2f, -0.6f, -9}),
                            two_rows(), {2, 0}, table, 2);
    EXPECT_EQ(out.frontier[0], 4);
    EXPECT_EQ(out.frontier[1], 7);
    EXPECT_FLOAT_EQ(out.table[4].value, -0.1f);
}

TEST_P(BeamTest, NanNeverWins) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float low = -std::numeric_limits<float>::infinity();
    const Outcome out = run(step(4), two_by_three(), log_probs({nan, low, -3, nan, -0.6f, low}),
                            two_rows(), {2, 0}, std::vector<Candidate>(12), 6);
    EXPECT_EQ(std::vector<int>(out.frontier.begin(), out.frontier.begin() + 6),
              (std::vector<int>{8, 6, 5, 9, 4, 7}));
}

TEST_P(BeamTest, TakesAGivenSelection) {
    const Outcome out = run(step(4), two_by_three(), log_probs({-1, -2, -3, -4, -5, -6}),
                            two_rows(), {2, 0}, std::vector<Candidate>(12), 2, {5, 1});
    EXPECT_EQ(out.parent_row, (std::vector<int>{1, 0}));
    EXPECT_EQ(out.next[0].token, 22);
    EXPECT_EQ(out.next[1].token, 11);
}

TEST_P(BeamTest, ExtendsThePrefixFromTheRoot) {
    Indices ids(1, 3);
    ids.data = {5, 6, 7};
    Matrix log_prob(1, 3);
    log_prob.data = {-3, -1, -2};
    const Row last{.token = 4, .position = 30, .sequence = 1, .slot = 30, .prefix = 28};
    Beam first = step(0, 2);
    first.from_root = true;
    const Outcome out = run(first, ids, log_prob, {last}, {}, std::vector<Candidate>(3), 2);
    EXPECT_EQ(out.table[0].parent, -1);
    EXPECT_EQ(out.frontier[0], 1);
    EXPECT_EQ(out.frontier[1], 2);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(out.next[size_t(i)].position, 31);
        EXPECT_EQ(out.next[size_t(i)].prefix, 31);
        EXPECT_EQ(out.next[size_t(i)].slot, 33 + i);
        EXPECT_EQ(out.next[size_t(i)].sequence, 1);
    }
}

TEST_P(BeamTest, LastLevelOnlyFillsTheTable) {
    const Outcome out = run(step(4), two_by_three(), log_probs({-1, -2, -3, -4, -5, -6}),
                            two_rows(), {2, 0}, std::vector<Candidate>(10), 0);
    EXPECT_EQ(out.table[9].token, 22);
    EXPECT_EQ(out.frontier[0], 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, BeamTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
