// Penalties on each node's own path.
#include "engine/sampling.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"

namespace aerie {
namespace {

std::map<int, Edit> of_row(std::span<const Edit> edits, int row) {
    std::map<int, Edit> result;
    for (const Edit& edit : edits) {
        if (edit.row != row) continue;
        EXPECT_TRUE(result.emplace(edit.token, edit).second);
    }
    return result;
}

TEST(Penalties, NoneMakeNoEdits) {
    TokenHistory history;
    history.reset({}, 100);
    history.add_prompt(std::vector<int>{1, 2});
    EXPECT_TRUE(history.edits().empty());
    EXPECT_TRUE(history.edits(TokenTree(3)).empty());
}

TEST(Penalties, CountPromptForRepetitionOnly) {
    TokenHistory history;
    history.reset({2, 0.5f, 0.25f}, 100);
    history.add_prompt(std::vector<int>{5, 6, 5});
    history.add_output(6);
    history.add_output(7);
    const auto edits = of_row(history.edits(), -1);
    ASSERT_EQ(edits.size(), 3u);
    EXPECT_EQ(edits.at(5).divide, 2);
    EXPECT_EQ(edits.at(5).add, 0);
    EXPECT_EQ(edits.at(6).add, -0.75f);
    EXPECT_EQ(edits.at(7).add, -0.75f);
}

TEST(Penalties, FollowEachNodesOwnPath) {
    TokenHistory history;
    history.reset({1, 1, 0}, 100);
    history.add_output(10);  // the root
    TokenTree tree(10);
    tree.add(10, 0);  // 1: once more
    tree.add(20, 0);  // 2
    tree.add(10, 2);  // 3
    const std::span<const Edit> edits = history.edits(tree);
    EXPECT_EQ(of_row(edits, 0).at(10).add, -1);
    EXPECT_EQ(of_row(edits, 1).at(10).add, -2);
    EXPECT_EQ(of_row(edits, 1).count(20), 0u);
    EXPECT_EQ(of_row(edits, 2).at(20).add, -1);
    EXPECT_EQ(of_row(edits, 2).at(10).add, -1);
    EXPECT_EQ(of_row(edits, 3).at(10).add, -2);
    EXPECT_EQ(of_row(edits, 3).at(20).add, -1);
    // Nothing of the tree stays.
    EXPECT_EQ(of_row(history.edits(), -1).size(), 1u);
}

TEST(Sampling, RefusesValuesOutOfRange) {
    Sampling sampling;
    EXPECT_NO_THROW(check_sampling(sampling));
    sampling.filters.temperature = -1;
    EXPECT_THROW(check_sampling(sampling), UsageError);
    sampling.filters.temperature = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(check_sampling(sampling), UsageError);
    sampling.filters.temperature = 1;
    sampling.filters.top_p = 1.5f;
    EXPECT_THROW(check_sampling(sampling), UsageError);
    sampling.filters.top_p = 1;
    sampling.penalties.repetition = 0;
    EXPECT_THROW(check_sampling(sampling), UsageError);
}

}  // namespace
}  // namespace aerie
