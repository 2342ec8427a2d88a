// Proposals of prompt lookup.
#include <gtest/gtest.h>

#include "engine/bundled.h"

namespace aerie::test {
namespace {

class LookupTest : public testing::Test {
  protected:
    TokenTree tree_after(const std::vector<int>& text) {
        const auto state = drafter_->begin();
        drafter_->prepare({*state, text});
        TokenTree tree = drafter_->propose({*state, text});
        EXPECT_EQ(tree.tokens[0], text.back());
        return tree;
    }
    // The tokens along the first children.
    std::vector<int> proposed(const std::vector<int>& text) {
        const TokenTree tree = tree_after(text);
        std::vector<int> path;
        for (int i = 1, last = 0; i < tree.size(); ++i)
            if (tree.parents[size_t(i)] == last) {
                path.push_back(tree.tokens[size_t(i)]);
                last = i;
            }
        return path;
    }

    static DraftOptions options() {
        DraftOptions options = draft_options("lookup");
        options.tree = TreeShape{60, 5, 10};
        return options;
    }

    Bundled model_;
    std::unique_ptr<Drafter> drafter_ = model_.model().drafter(options(), model_.limits());
};

TEST_F(LookupTest, GoesOnAsAfterTheSameWordsBefore) {
    EXPECT_EQ(proposed({1, 2, 3, 4, 5, 6, 7, 8, 2, 3}), (std::vector<int>{4, 5, 6, 7, 8}));
    // The longest match counts; of equally long ones the newest counts.
    EXPECT_EQ(proposed({1, 2, 30, 31, 32, 33, 34, 9, 2, 40, 41, 42, 43, 44, 1, 2}),
              (std::vector<int>{30, 31, 32, 33, 34}));
    EXPECT_EQ(proposed({2, 30, 31, 32, 33, 34, 9, 2, 40, 41, 42, 43, 44, 8, 2}),
              (std::vector<int>{40, 41, 42, 43, 44}));
}

TEST_F(LookupTest, HasSeveralContinuationsInOneTree) {
    const TokenTree tree = tree_after({2, 30, 31, 32, 33, 9, 2, 40, 41, 42, 43, 8, 2});
    std::vector<int> first;
    for (int i = 1; i < tree.size(); ++i)
        if (tree.parents[size_t(i)] == 0) first.push_back(tree.tokens[size_t(i)]);
    EXPECT_EQ(first, (std::vector<int>{40, 30}));
}

TEST_F(LookupTest, TakesWhatRepeatsToRepeatAgain) {
    EXPECT_EQ(proposed({1, 7, 7}), (std::vector<int>{7, 7, 7, 7, 7}));
    EXPECT_EQ(proposed({1, 2, 3, 2, 3}), (std::vector<int>{2, 3, 2, 3, 2}));
    EXPECT_EQ(proposed({5, 6, 8, 5, 6}), (std::vector<int>{8, 5, 6, 8, 5}));
}

TEST_F(LookupTest, ProposesNothingAfterNewWords) {
    EXPECT_TRUE(proposed({1, 2, 3, 4}).empty());
    EXPECT_TRUE(proposed({1}).empty());
}

}  // namespace
}  // namespace aerie::test
