// The rule of acceptance, and the rows that are derived from a tree.
#include "engine/accept.h"

#include <gtest/gtest.h>

namespace aerie {
namespace {

TokenTree sample_tree() {
    TokenTree tree(10);  // 0
    tree.add(20, 0);     // 1
    tree.add(21, 0);     // 2
    tree.add(30, 1);     // 3
    tree.add(30, 2);     // 4
    tree.add(40, 4);     // 5
    return tree;
}

TEST(Accept, DescendsWhileTheChoiceIsAChild) {
    const Path path = accept(sample_tree(), std::vector<int>{21, 0, 30, 0, 40, 99});
    EXPECT_EQ(path.nodes, (std::vector<int>{0, 2, 4, 5}));
    EXPECT_EQ(path.next, 99);
}

TEST(Accept, StopsAtTheFirstChoiceThatIsNoChild) {
    const Path path = accept(sample_tree(), std::vector<int>{20, 31, 30, 0, 40, 99});
    EXPECT_EQ(path.nodes, (std::vector<int>{0, 1}));
    EXPECT_EQ(path.next, 31);
}

TEST(Accept, TakesNoTokenFromAnotherBranch) {
    // 40 is drafted, but below node 4, not below node 3.
    const Path path = accept(sample_tree(), std::vector<int>{20, 30, 30, 40, 40, 99});
    EXPECT_EQ(path.nodes, (std::vector<int>{0, 1, 3}));
    EXPECT_EQ(path.next, 40);
}

TEST(Accept, ABareRootEmitsTheChoice) {
    const Path path = accept(TokenTree(10), std::vector<int>{7});
    EXPECT_EQ(path.nodes, std::vector<int>{0});
    EXPECT_EQ(path.next, 7);
}

TEST(VerifyRows, PositionsSlotsAndAncestors) {
    const auto rows = verify_rows(sample_tree(), 100);
    EXPECT_EQ(depths(sample_tree()), (std::vector<int>{0, 1, 1, 2, 2, 3}));
    EXPECT_EQ(rows[5].position, 103);
    EXPECT_EQ(rows[5].slot, 105);
    EXPECT_EQ(rows[5].prefix, 100);
    EXPECT_EQ(rows[5].path[0], 100);
    EXPECT_EQ(rows[5].path[1], 102);
    EXPECT_EQ(rows[5].path[2], 104);
    EXPECT_EQ(rows[0].depth(), 0);
}

}  // namespace
}  // namespace aerie
