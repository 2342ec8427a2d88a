// A kind of draft head: everything that the rest of the program asks about it.
#pragma once

#include <string>
#include <vector>

#include "draft/heads/head_config.h"
#include "draft/trees/tree_drafter.h"
#include "io/checkpoint.h"
#include "model/config_fields.h"

namespace aerie {

// A method of draft/methods.h that grows trees with a head.
struct HeadMethod {
    std::string name;
    std::string help;  // ends the sentence "--draft name: "
    Growth (*growth)(const DraftOptions&) = nullptr;
    bool takes_tree = true, takes_tree_file = false;  // as in DraftMethod
};

// The starts of tensor names that an exporter writes, and aerie's own in their place.
struct Spelling {
    std::string theirs, ours;
};

// Heads of random weights.
struct RandomHead {
    // The configuration of a head for this target. Null: no such heads are made.
    HeadConfig (*shape)(const ModelConfig& target) = nullptr;
    Json (*config_json)(const HeadConfig&) = nullptr;
    // The tensors of a head's files; matrices and vectors have this type.
    std::vector<NamedTensor> (*tensors)(const HeadConfig&, DType) = nullptr;
    // Fills elements [first, ...) of a tensor that holds no weights. False: it holds weights.
    bool (*fill)(const HeadConfig&, const NamedTensor&, int64_t first,
                 std::span<std::byte> out) = nullptr;  // null: all tensors hold weights
};

// A row of the table in draft/heads/kinds.cpp.
struct DraftHead {
    std::string name;    // with an article, for messages: "an EAGLE-3 head"
    std::string ending;  // MODEL with this ending is a head for MODEL: "-eagle3"
    DraftNeeds needs = DraftNeeds::head;
    HeadMethod method;  // the default for such heads
    // Names of other methods that take such heads. Methods that no row names take every head.
    std::vector<std::string> also = {};
    std::string recorded = {};  // its recorded acceptance, as `aerie bench` names it; empty: none

    // Files. One of the first two recognises them: by config.json, which suffices even if there are
    // no weights, or by the tensors.
    bool (*has_config)(const Fields& config) = nullptr;
    bool (*has_tensors)(const Checkpoint& tensors) = nullptr;
    std::vector<Spelling> spellings = {};
    // Reads the configuration; `kind` is set by the caller. Throws Error.
    HeadConfig (*config)(const ModelSource&) = nullptr;
    // Adds to a configuration what depends on the target. Null: nothing does.
    void (*complete)(const ModelConfig& target, HeadConfig&) = nullptr;
    // A line for `aerie info` about the fields that only this kind has. Null: none.
    std::string (*info)(const HeadConfig&) = nullptr;
    RandomHead random = {};

    // Options. Null: --head-taps is refused; false: --draft-vocab is.
    void (*set_taps)(HeadConfig&, const std::vector<int>& taps) = nullptr;
    bool has_draft_vocab = false;

    // Drafting.
    Taps (*taps)(const DraftPlan&) = nullptr;
    // Throws Error unless the head can draft for this target.
    void (*check)(const DraftPlan&) = nullptr;
    Limits (*limits)(const DraftPlan&, const TreeDrafterLimits&) = nullptr;
    DraftBytes (*bytes)(const DraftPlan&, const TreeDrafterLimits&) = nullptr;
    std::shared_ptr<const DraftWeights> (*load)(const DraftSource&) = nullptr;
    std::unique_ptr<LevelModel> (*levels)(const DraftSource&, const TreeDrafterLimits&) = nullptr;
    int (*most_levels)(const DraftPlan&) = nullptr;  // levels that the head can draft; null: any
};

// Makes the row of a method for the heads that take it.
DraftMethod head_method(const HeadMethod& method);

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
