// Static trees: the default one, and files.
#include "draft/trees/tree.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "draft/trees/tree_drafter.h"

namespace aerie {
namespace {

TEST(StaticTree, TheDefaultIsEagles) {
    // 25 drafted nodes, 4 + 8 + 8 + 3 + 2 by depth. The head expands 4, 4, 1 and 1 of them and the
    // root, which takes five passes.
    std::vector<int> by_depth(6);
    for (const auto& path : default_static_tree()) ++by_depth[path.size()];
    EXPECT_EQ(by_depth, (std::vector<int>{0, 4, 8, 8, 3, 2}));
    const TreeDrafterLimits reach = static_reach(default_static_tree());
    EXPECT_EQ(reach.nodes, 26);
    EXPECT_EQ(reach.levels, 5);
    EXPECT_EQ(reach.draft_slots, 4 + 4 + 1 + 1);
    EXPECT_EQ(reach.grow.width, 4);
}

TEST(StaticTree, FromAFile) {
    const auto file = std::filesystem::temp_directory_path() / "aerie-tree-test.json";
    const auto read = [&](const std::string& text) {
        std::ofstream(file) << text;
        return read_tree_file(file);
    };
    EXPECT_EQ(read("[[0],[1],[0,3]]"), (TreePaths{{0}, {1}, {0, 3}}));
    EXPECT_EQ(read("[[0,3],[0]]").size(), 2u);  // in any order
    for (const char* bad : {"[]", "{}", "[0]", "[[]]", "[[0,1]]", "[[0],[0]]", "[[32]]", "[[-1]]",
                            "[[0.5]]", "[[\"0\"]]", "nothing"})
        EXPECT_THROW(read(bad), Error) << bad;
    std::filesystem::remove(file);
}

TEST(AllowedRanks, AreThoseOnThePaths) {
    const AllowedRanks ranks({{0, 1}, {0}, {2}, {0, 1, 0}});
    const int first = ranks.child(AllowedRanks::kRoot, 0);
    EXPECT_NE(first, AllowedRanks::kNone);
    EXPECT_EQ(ranks.child(AllowedRanks::kRoot, 1), AllowedRanks::kNone);
    EXPECT_NE(ranks.child(AllowedRanks::kRoot, 2), AllowedRanks::kNone);
    EXPECT_EQ(ranks.child(AllowedRanks::kRoot, 3), AllowedRanks::kNone);
    EXPECT_EQ(ranks.child(first, 0), AllowedRanks::kNone);
    const int second = ranks.child(first, 1);
    EXPECT_NE(ranks.child(second, 0), AllowedRanks::kNone);
    EXPECT_EQ(ranks.child(second, 1), AllowedRanks::kNone);
    EXPECT_EQ(ranks.child(AllowedRanks::kNone, 0), AllowedRanks::kNone);
    const AllowedRanks all;
    EXPECT_NE(all.child(all.child(AllowedRanks::kRoot, 9), 31), AllowedRanks::kNone);
    const AllowedRanks chain(chain_paths(2));
    const int end = chain.child(chain.child(AllowedRanks::kRoot, 0), 0);
    EXPECT_NE(end, AllowedRanks::kNone);
    EXPECT_EQ(chain.child(end, 0), AllowedRanks::kNone);
}

TEST(TreeShape, Limits) {
    EXPECT_NO_THROW(check_tree_shape({60, 6, 10}));
    EXPECT_NO_THROW(check_tree_shape({2, 1, 1}));
    EXPECT_NO_THROW(check_tree_shape({64, 32, 32}));
    for (const TreeShape& shape :
         {TreeShape{1, 6, 10}, TreeShape{65, 6, 10}, TreeShape{60, 0, 10}, TreeShape{60, 33, 10},
          TreeShape{60, 6, 0}, TreeShape{60, 6, 33}})
        EXPECT_THROW(check_tree_shape(shape), UsageError);
}

}  // namespace
}  // namespace aerie
