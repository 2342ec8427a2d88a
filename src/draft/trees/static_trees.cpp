// Trees along given paths, such as EAGLE-1's. The ranks that are run and kept are known beforehand;
// only tokens are drafted.
#include <algorithm>
#include <map>

#include "draft/trees/tree_drafter.h"

namespace aerie {

namespace {

// A static tree as an expansion, and the table entries that become its nodes.
struct StaticPlan {
    ExpansionPlan expansion;
    NodeList kept;  // ascending
};

StaticPlan plan_static(const TreePaths& paths) {
    using Path = std::vector<int>;
    const auto ranks_below = [&](const Path& prefix) {
        int count = 0;
        for (const Path& path : paths)
            if (path.size() == prefix.size() + 1 &&
                std::equal(prefix.begin(), prefix.end(), path.begin()))
                ++count;
        return count;
    };
    StaticPlan plan;
    size_t levels = 0;
    for (const Path& path : paths) {
        plan.expansion.top_k = std::max(plan.expansion.top_k, path.back() + 1);
        levels = std::max(levels, path.size());
    }
    std::map<Path, int> frontier = {{{}, 0}};  // nodes of the level above that are run -> their row
    for (size_t depth = 1, offset = 0; depth <= levels; ++depth) {
        std::vector<std::pair<int, Path>> level;  // candidate number -> path
        for (const Path& path : paths)
            if (path.size() == depth)
                level.emplace_back(
                    frontier.at(Path(path.begin(), path.end() - 1)) * plan.expansion.top_k +
                        path.back(),
                    path);
        std::sort(level.begin(), level.end());
        const size_t candidates = frontier.size() * size_t(plan.expansion.top_k);
        frontier.clear();
        LevelPlan next;
        for (const auto& [number, path] : level) {
            plan.kept.push_back(int(offset) + number);
            if (ranks_below(path) == 0) continue;
            frontier.emplace(path, next.width++);
            next.selection.push_back(number);
        }
        if (next.width > 0) plan.expansion.levels.push_back(std::move(next));
        offset += candidates;
    }
    return plan;
}

class StaticTrees final : public TreeDrafter {
  public:
    StaticTrees(const DraftSource& source, const TreePaths& paths, Parts parts)
        : TreeDrafter(source, std::move(parts)), plan_(plan_static(paths)) {}

    TokenTree propose(const DraftRequest& request) override {
        return tree(expand(plan_.expansion, request), plan_.kept, request);
    }

    void propose_all(std::span<const DraftRequest> requests,
                     std::span<TokenTree* const> trees) override {
        if (requests.size() == 1) return void(*trees[0] = propose(requests[0]));
        expand_all(plan_.expansion, requests, [&](size_t i, std::span<const Candidate> table) {
            *trees[i] = tree(table, plan_.kept, requests[i]);
        });
    }

  private:
    StaticPlan plan_;
};

}  // namespace

TreeDrafterLimits static_reach(const TreePaths& paths) {
    const StaticPlan plan = plan_static(paths);
    TreeDrafterLimits reach;
    reach.nodes = int(paths.size()) + 1;
    reach.levels = int(plan.expansion.levels.size()) + 1;
    reach.grow = {plan.expansion.top_k, 1, level_offsets(plan.expansion).back()};
    for (const LevelPlan& level : plan.expansion.levels) {
        reach.draft_slots += level.width;
        reach.grow.width = std::max(reach.grow.width, level.width);
    }
    return reach;
}

std::unique_ptr<Drafter> make_static_trees(const DraftSource& source, TreeDrafter::Parts parts) {
    const TreePaths paths = parts.growth.paths;
    return std::make_unique<StaticTrees>(source, paths, std::move(parts));
}

}  // namespace aerie
