// EAGLE-2: a dynamic tree by cumulative value, reranked over all candidates (EAGLE-2 section 4).
#include <algorithm>

#include "draft/eagle.h"

namespace aerie {

namespace {

class Eagle2 final : public EagleDrafter {
  public:
    Eagle2(const HeadSource& source, const DraftOptions& options)
        : EagleDrafter(source, dynamic_reach(options), options),
          options_(options),
          expansion_(dynamic_expansion(*options.tree, options.use_value)) {}

    TokenTree propose(const DraftContext& context) override {
        if (options_.shape_policy) {
            options_.tree = options_.shape_policy();
            expansion_ = dynamic_expansion(*options_.tree, options_.use_value);
        }
        const std::span<const Candidate> table = expand(expansion_, context);
        return tree_of(table, choose(table), context.pending);
    }

  private:
    NodeList choose(std::span<const Candidate> table) const {
        const int drafted = options_.tree->nodes - 1;
        if (options_.rerank) return best_entries(table, 0, int(table.size()), drafted);
        // The ablation without rerank: the frontiers as they were grown, cut in level order.
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

    DraftOptions options_;  // `tree` is that of the newest proposal
    Expansion expansion_;
};

}  // namespace

EagleReach dynamic_reach(const DraftOptions& options) {
    const TreeShape& shape = *options.tree;
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
