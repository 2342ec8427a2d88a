// A kind of draft head: the functions that the methods growing trees with it need.
#pragma once

#include <vector>

#include "draft/trees/tree_drafter.h"

namespace aerie {

struct DraftHead {
    const char* kind;  // for messages: "an EAGLE-3 head"
    DraftNeeds needs;
    Taps (*taps)(const DraftPlan&);
    // Throws Error unless the head can draft for this target.
    void (*check)(const DraftPlan&);
    Limits (*limits)(const DraftPlan&, const TreeDrafterLimits&);
    DraftBytes (*bytes)(const DraftPlan&, const TreeDrafterLimits&);
    std::shared_ptr<const DraftWeights> (*load)(const DraftSource&);
    std::unique_ptr<LevelModel> (*levels)(const DraftSource&, const TreeDrafterLimits&);
    int (*most_levels)(const DraftPlan&) = nullptr;  // levels that the head can draft; null: any
};

// EAGLE-1/2: one decoder layer that extrapolates the target's features (EAGLE section 4.1).
extern const DraftHead kEagleHead;
// EAGLE-3: one layer over three of the target's hidden states, with an LM head of its own.
extern const DraftHead kEagle3Head;
// Medusa: a head for each token ahead (Cai et al. 2024).
// Hydra: the same, but a head also sees the tokens between (Ankner et al. 2024).
extern const DraftHead kMedusaHead;
extern const DraftHead kHydraHead;
// A complete language model, smaller than the target.
extern const DraftHead kDraftModel;

// The kind of the plan's head.
const DraftHead& head_of(const DraftPlan& plan);

// Makes the row of a method that grows such trees with a head of one of these kinds. `beside`:
// suffixes such as "-eagle" that a fitting head beside MODEL may have; empty: any.
DraftMethod head_method(const char* name, const char* help, Growth (*growth)(const DraftOptions&),
                        std::vector<const DraftHead*> kinds, std::vector<std::string> beside = {});

// The target ids of a head's own ids, on a device; absent if both are the same.
class TargetIds {
  public:
    TargetIds() = default;
    TargetIds(Backend& be, std::span<const int32_t> ids);

    operator Tensor() const { return tensor_; }  // I32 [1, ids]

  private:
    Buffer memory_;
    Tensor tensor_;
};

// Shape of the KV cache of an EAGLE head's only layer.
KvShape head_kv(const DraftPlan& plan, const TreeDrafterLimits& reach);

// The type of the target's LM head when a head drafts with it: `weights`, or the type of the head's
// own fc.
DType lm_head_type(const Checkpoint& head, std::optional<DType> weights);

}  // namespace aerie
