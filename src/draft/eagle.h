// What chain, eagle1 and eagle2 have in common: one head, true features in, a grown tree out.
#pragma once

#include "draft/drafter.h"
#include "draft/eagle_head.h"
#include "draft/grow.h"

namespace aerie {

// What a drafter of these options can reach; sizes every buffer.
struct EagleReach {
    int nodes = 0;        // of the tree, root included
    int levels = 0;       // of drafted tokens
    int draft_slots = 0;  // head KV slots beyond the committed positions
    GrowLimits grow;

    DraftReach draft_reach(const ModelConfig& target) const {
        return {nodes, levels, {target.layers}};  // the feature is what the LM head reads
    }
    HeadLimits head_limits(const ModelConfig& head, DType kv, int context, int pass_rows) const;
};

class EagleDrafter : public Drafter {
  public:
    EagleDrafter(const HeadSource& source, const EagleReach& reach, Proposals proposals);

    DraftReach reach() const override { return reach_.draft_reach(head_.target().config()); }
    void observe(Tensor features, std::span<const int> next_tokens, int position) override;

  protected:
    std::vector<Candidate> expand(const Expansion& expansion, const DraftContext& context);

  private:
    Backend& be_;
    EagleReach reach_;
    EagleHead head_;
    TreeGrower grower_;
    Buffer memory_;
    Tensor rows_;    // [pass_rows, kRowInts]
    Tensor hidden_;  // [pass_rows, hidden]: the head's output at the observed positions
    int last_ = 0;   // row of the newest committed position
};

EagleReach static_reach(const DraftOptions& options);
EagleReach dynamic_reach(const DraftOptions& options);
std::unique_ptr<Drafter> make_eagle1(const HeadSource& source, const DraftOptions& options);
std::unique_ptr<Drafter> make_eagle2(const HeadSource& source, const DraftOptions& options);

}  // namespace aerie
