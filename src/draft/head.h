// What drafts, by its kind: what the methods that grow trees with it need of it.
#pragma once

#include <vector>

#include "draft/grown.h"

namespace aerie {

struct DraftHead {
    const char* kind;  // for people: "an EAGLE-3 head"
    DraftNeeds needs;
    Taps (*taps)(const DraftPlan&);
    // Throws Error unless it can draft for this target.
    void (*check)(const DraftPlan&);
    Limits (*limits)(const DraftPlan&, const GrownReach&);
    DraftBytes (*bytes)(const DraftPlan&, const GrownReach&);
    std::shared_ptr<const DraftWeights> (*load)(const DraftSource&);
    std::unique_ptr<LevelModel> (*levels)(const DraftSource&, const GrownReach&);
    int (*most_levels)(const DraftPlan&) = nullptr;  // that it can draft; null: any
};

// EAGLE-1/2: one decoder layer that extrapolates the target's features (EAGLE section 4.1).
extern const DraftHead kEagleHead;
// EAGLE-3: one layer over three of the target's hidden states, with an LM head of its own.
extern const DraftHead kEagle3Head;
// A head for each token ahead (Cai et al. 2024), and one that sees the tokens between (Ankner et
// al. 2024).
extern const DraftHead kMedusaHead;
extern const DraftHead kHydraHead;
// A smaller language model, whole.
extern const DraftHead kDraftModel;

// Of the plan's head.
const DraftHead& head_of(const DraftPlan& plan);

// The row of a method that grows such trees with a head of one of these kinds. `beside`: how what
// lies beside MODEL and drafts so is called, "-eagle"; empty: any.
DraftMethod head_method(const char* name, const char* help, Growth (*growth)(const DraftOptions&),
                        std::vector<const DraftHead*> kinds, std::vector<std::string> beside = {});

// Target ids of a head's own on a device; absent where they are the same.
class TargetIds {
  public:
    TargetIds() = default;
    TargetIds(Backend& be, std::span<const int32_t> ids);

    operator Tensor() const { return tensor_; }  // I32 [1, ids]

  private:
    Buffer memory_;
    Tensor tensor_;
};

// Keys and values of an EAGLE head's one layer.
KvShape head_kv(const DraftPlan& plan, const GrownReach& reach);

// The type that an LM head of the target has where a head drafts with it: `weights`, or that of the
// head's own fc.
DType lm_head_type(const Checkpoint& head, std::optional<DType> weights);

}  // namespace aerie
