// What chain, eagle1 and eagle2 have in common: one head, true features in, a grown tree out.
#pragma once

#include <climits>
#include <vector>

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

// Device memory of a drafter besides the head's and the grower's.
struct EagleTensors {
    void add_to(TensorPlan& plan, int hidden, const EagleReach& reach, int context, int pass_rows);

    Tensor features;  // [positions, hidden], all that was observed
    Tensor rows;      // [pass_rows, kRowInts]
    Tensor hidden;    // [pass_rows, hidden]: the head's output at the positions of its last pass
};

// Observing only stores; the head reads what it has missed when a proposal needs it.
class EagleDrafter : public Drafter {
  public:
    EagleDrafter(const HeadSource& source, const EagleReach& reach, const DraftOptions& options);

    DraftReach reach() const override { return reach_.draft_reach(head_.target().config()); }
    void observe(Tensor features, std::span<const int> next_tokens, int position) override;
    void prepare() override { catch_up(); }

  protected:
    std::span<const Candidate> expand(const Expansion& expansion, const DraftContext& context);
    std::span<const Candidate> grow(FrontierPolicy& policy, int top_k, const DraftContext& context);

    int backlog() const { return int(tokens_.size()) - read_; }  // positions that the head misses
    // Runs the head over them. With more than `window` of them it forgets what it knew and begins
    // anew that far back: proposals may get worse, the cost stays bounded.
    void catch_up(int window = INT_MAX);

  private:
    HeadPosition last() const;

    Backend& be_;
    EagleReach reach_;
    EagleHead head_;
    TreeGrower grower_;
    Buffer memory_;
    EagleTensors t_;
    int pass_rows_;
    std::vector<int> tokens_;  // [position]: the token that follows it
    int first_ = 0;  // position where the head's text begins; its own positions count from here
    int read_ = 0;   // positions below have been run through the head
    std::vector<Row> rows_;  // of the head's last pass
};

EagleReach static_reach(const DraftOptions& options);
EagleReach dynamic_reach(const DraftOptions& options);
std::unique_ptr<Drafter> make_eagle1(const HeadSource& source, const DraftOptions& options);
// options.tree is the most that a tree may be.
std::unique_ptr<Drafter> make_eagle_auto(const HeadSource& source, const DraftOptions& options);
std::unique_ptr<Drafter> make_eagle2(const HeadSource& source, const DraftOptions& options);

}  // namespace aerie
