// EAGLE-2's choice of nodes, as a function of the table of candidates.
#include "draft/trees/tree_grower.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace aerie {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

TEST(BestEntries, TakesTheBestAndBreaksTiesByIndex) {
    const std::vector<Candidate> table = {
        {1, -1, -1.0f, 0}, {2, -1, -0.5f, 0}, {3, 0, -1.0f, 0}, {4, 0, -2.0f, 0}, {5, 1, -1.0f, 0}};
    EXPECT_EQ(best_entries(table, 0, 5, 3), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(best_entries(table, 0, 5, 99).size(), 5u);
    EXPECT_EQ(best_entries(table, 2, 5, 1), (std::vector<int>{2}));
    EXPECT_TRUE(best_entries(table, 0, 5, 0).empty());
}

TEST(BestEntries, NeverTakesWhatCannotBeChosen) {
    const std::vector<Candidate> table = {
        {1, -1, kNever, 0}, {2, -1, std::nanf(""), 0}, {3, -1, -3.0f, 0}};
    EXPECT_EQ(best_entries(table, 0, 3, 3), (std::vector<int>{2}));
}

TEST(TreeOf, NumbersNodesAndDropsOrphans) {
    const std::vector<Candidate> table = {
        {10, -1, 0, 0}, {11, -1, 0, 0}, {20, 0, 0, 0}, {21, 1, 0, 0}, {30, 3, 0, 0}};
    const TokenTree tree = tree_of(table, {0, 3, 4}, 5);  // 21 and 30 hang on 11, which is not kept
    EXPECT_EQ(tree.tokens, (std::vector<int>{5, 10}));
    EXPECT_EQ(tree.parents, (std::vector<int>{-1, 0}));
    const TokenTree whole = tree_of(table, {0, 1, 3, 4}, 5);
    EXPECT_EQ(whole.tokens, (std::vector<int>{5, 10, 11, 21, 30}));
    EXPECT_EQ(whole.parents, (std::vector<int>{-1, 0, 0, 2, 3}));
}

TEST(TreeOf, HasNothingThatCannotBeChosenAndKnowsItsEntries) {
    const std::vector<Candidate> table = {
        {10, -1, 0, 0}, {0, -1, kNever, 0}, {20, 0, 0, 0}, {21, 0, kNever, 0}, {30, 1, 0, 0}};
    NodeList entries;
    const TokenTree tree = tree_of(table, {0, 1, 2, 3, 4}, 5, &entries);
    EXPECT_EQ(tree.tokens, (std::vector<int>{5, 10, 20}));
    EXPECT_EQ(entries, (std::vector<int>{-1, 0, 2}));
}

// A parent's value is never below its child's and its index is lower, so the best nodes are closed
// under parents.
TEST(TreeOf, BestNodesAreClosedUnderParents) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<Candidate> table;
        for (int i = 0; i < 200; ++i) {
            Candidate candidate{i, i < 8 ? -1 : int(random() % unsigned(i)), 0, 0};
            // Coarse steps make many ties; some children are as good as their parents.
            const float above = candidate.parent < 0 ? 0 : table[size_t(candidate.parent)].value;
            candidate.value = above - float(random() % 3);
            table.push_back(candidate);
        }
        const int count = 1 + int(random() % 60);
        const TokenTree tree = tree_of(table, best_entries(table, 0, 200, count), 0);
        EXPECT_EQ(tree.size(), count + 1);
    }
}

TEST(Expansion, LevelsOfTheReference) {
    // total_token 60, depth 5, top_k 10: k + D k^2 candidates (drafting.md section 3).
    const ExpansionPlan expansion = dynamic_expansion({60, 6, 10}, true);
    EXPECT_EQ(expansion.levels.size(), 5u);
    EXPECT_EQ(level_offsets(expansion).back(), 10 + 5 * 100);
    EXPECT_EQ(level_offsets(dynamic_expansion({2, 1, 4}, true)), (std::vector<int>{0, 4}));
}

}  // namespace
}  // namespace aerie
