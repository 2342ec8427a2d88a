// EAGLE-2: a dynamic tree by cumulative value, reranked over all candidates (EAGLE-2 section 4).
#include <algorithm>

#include "draft/eagle.h"

namespace aerie {

namespace {

class Eagle2 final : public EagleDrafter {
  public:
    Eagle2(const HeadSource& source, const DraftOptions& options)
        : EagleDrafter(source, dynamic_reach(options), options.proposals), options_(options) {}

    TokenTree propose(const DraftContext& context) override {
        const TreeShape shape = options_.shape_policy ? options_.shape_policy() : options_.tree;
        const Expansion expansion = dynamic_expansion(shape, options_.use_value);
        const std::vector<Candidate> table = expand(expansion, context);
        return tree_of(table, choose(table, expansion, shape), context.pending);
    }

  private:
    std::vector<int> choose(const std::vector<Candidate>& table, const Expansion& expansion,
                            const TreeShape& shape) const {
        const int drafted = shape.nodes - 1;
        if (options_.rerank) return best_entries(table, 0, int(table.size()), drafted);
        // The ablation without rerank: the frontiers as they were grown, cut in level order.
        std::vector<int> kept;
        const std::vector<int> offsets = level_offsets(expansion);
        for (size_t level = 0; level + 1 < offsets.size(); ++level)
            for (int entry : best_entries(table, offsets[level], offsets[level + 1], shape.top_k))
                if (int(kept.size()) < drafted) kept.push_back(entry);
        return kept;
    }

    DraftOptions options_;
};

}  // namespace

EagleReach dynamic_reach(const DraftOptions& options) {
    const TreeShape& shape = options.tree;
    check_tree_shape(shape);
    EagleReach reach;
    reach.nodes = shape.nodes;
    reach.levels = shape.levels;
    reach.draft_slots = (shape.levels - 1) * shape.top_k;
    reach.grow = {shape.top_k, shape.top_k,
                  shape.top_k + (shape.levels - 1) * shape.top_k * shape.top_k};
    return reach;
}

std::unique_ptr<Drafter> make_eagle2(const HeadSource& source, const DraftOptions& options) {
    return std::make_unique<Eagle2>(source, options);
}

}  // namespace aerie
