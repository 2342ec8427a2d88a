// A tree of a given shape that grows where the head is confident and is reranked over all
// candidates (EAGLE-2 section 4). A chain is the narrowest such tree.
#include <algorithm>

#include "draft/trees/tree_drafter.h"

namespace aerie {

namespace {

class DynamicTrees final : public TreeDrafter {
  public:
    DynamicTrees(const DraftSource& source, const TreeShape& shape, Parts parts)
        : TreeDrafter(source, std::move(parts)), options_(source.plan.options) {
        set_shape(shape);
    }

    TokenTree propose(const DraftRequest& request) override {
        if (options_.shape_policy) set_shape(options_.shape_policy());
        return best_tree(expand(expansion_, request), request);
    }

    void propose_all(std::span<const DraftRequest> requests,
                     std::span<TokenTree* const> trees) override {
        if (requests.size() == 1) return void(*trees[0] = propose(requests[0]));
        if (options_.shape_policy) set_shape(options_.shape_policy());
        expand_all(expansion_, requests, [&](size_t i, std::span<const Candidate> table) {
            *trees[i] = best_tree(table, requests[i]);
        });
    }

    void learn(const Verified& verified) override {
        static_cast<State&>(verified.state).softness.learn(verified);
    }

  private:
    void set_shape(const TreeShape& shape) {
        nodes_ = shape.nodes;
        expansion_ = dynamic_expansion(shape, options_.use_value);
    }

    TokenTree best_tree(std::span<const Candidate> table, const DraftRequest& request) const {
        if (expansion_.top_k > 1 && request.noise)
            static_cast<State&>(request.state).softness.ranked(table);
        return tree(table, choose(table), request);
    }

    NodeList choose(std::span<const Candidate> table) const {
        const int drafted = nodes_ - 1;
        if (options_.rerank) return best_entries(table, 0, int(table.size()), drafted);
        // The ablation without rerank: the best top_k of each level, cut in level order.
        NodeList kept;
        for (int first = 0, width = 1, level = 0; first < int(table.size()); ++level) {
            const int last = first + width * expansion_.top_k;
            for (int entry : best_entries(table, first, last, expansion_.top_k))
                if (int(kept.size()) < drafted) kept.push_back(entry);
            first = last;
            width = expansion_.top_k;
        }
        return kept;
    }

    DraftOptions options_;
    int nodes_ = 0;  // nodes of the newest proposal, root included
    ExpansionPlan expansion_;
};

}  // namespace

TreeDrafterLimits dynamic_reach(const TreeShape& shape) {
    check_tree_shape(shape);
    TreeDrafterLimits reach;
    reach.nodes = shape.nodes;
    reach.levels = shape.levels;
    reach.draft_slots = (shape.levels - 1) * shape.top_k;
    reach.grow = {shape.top_k, shape.top_k,
                  shape.top_k + (shape.levels - 1) * shape.top_k * shape.top_k};
    return reach;
}

std::unique_ptr<Drafter> make_dynamic_trees(const DraftSource& source, TreeDrafter::Parts parts) {
    const TreeShape shape = parts.growth.shape;
    return std::make_unique<DynamicTrees>(source, shape, std::move(parts));
}

}  // namespace aerie
