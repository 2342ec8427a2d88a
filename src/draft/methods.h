// The table of draft methods: one row for each drafter, in methods.cpp. The command line, the
// loader, reports and tests read this table.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "draft/drafter.h"
#include "draft/heads/head_config.h"
#include "draft/options.h"
#include "io/model_source.h"

namespace aerie {

// Everything that is known before a drafter is loaded. The members are values, except the files,
// which only checks and loaders read.
struct DraftPlan {
    DraftOptions options;
    ModelConfig target;
    const ModelSource* source = nullptr;  // files of the head or draft model; may be null
    std::optional<HeadConfig> head = {};  // configuration of the head
    std::vector<int32_t> head_ids = {};   // vocabulary of an EAGLE-1/2 head; empty: all ids
    std::optional<DType> weights = {};    // unset: as stored
    DType lm_head_type = DType::F32;      // type in which the target's LM head is stored
    DType kv = DType::F16;
    int context = 0;                     // most positions of a sequence
    int pass_rows = 0;                   // most rows in a call of observe
    int sequences = 1;                   // most sequences at a time
    int together = 1;                    // most sequences that draft in the same passes
    int64_t cache_tokens = 0;            // tokens of all sequences; 0: each has room for a context
    std::vector<DraftPlan> others = {};  // plans of further heads
};

// Bytes of a drafter on its device.
struct DraftBytes {
    size_t weights = 0, scratch = 0;
    WeightTypes types;  // bytes of the matrices among the weights, by type
};

// Everything that a drafter is made from.
struct DraftSource {
    Backend& backend;
    const Target& target;
    const DraftPlan& plan;
    std::shared_ptr<const DraftWeights> weights;  // made by the method's `load`
};

enum class DraftNeeds { nothing, head, language_model, what_there_is };

// A row of the table: one value of --draft.
struct DraftMethod {
    std::string name;
    std::string help;  // ends the sentence "--draft name: "
    DraftNeeds needs = DraftNeeds::nothing;
    std::string wants;                // the needed files, for messages: "a Medusa head"
    std::vector<std::string> beside;  // suffixes of fitting heads beside MODEL; empty: any
    bool is_replayed = false;      // whether `aerie bench` can measure it with recorded acceptance
    bool is_drawn = false;         // whether its drafts can be drawn, as AcceptRule::ratio requires
    bool takes_tree = true;        // whether its trees can have a shape, DraftOptions::tree
    bool has_published = true;     // whether DraftOptions::is_published changes it
    bool takes_tree_file = false;  // whether DraftOptions::static_tree does
    std::function<DraftReach(const DraftPlan&)> reach;
    // Throws Error unless the plan's files can draft for its target. Null: nothing to check.
    std::function<void(const DraftPlan&)> check;
    // Limits that it asks of a backend, and bytes that it allocates there. Empty: none.
    std::function<Limits(const DraftPlan&)> limits;
    std::function<DraftBytes(const DraftPlan&)> bytes;
    // Bytes of host memory that it takes for the texts of sequences. Empty: next to none.
    std::function<size_t(const DraftPlan&)> host_bytes;
    // Name of its weights: methods with the same name share them. Empty: it has none.
    std::string weights;
    std::shared_ptr<const DraftWeights> (*load)(const DraftSource&) = nullptr;  // null: no weights
    std::function<std::unique_ptr<Drafter>(const DraftSource&)> make;
};

constexpr const char* kNoDrafts = "none";    // plain decoding
constexpr const char* kFormerBest = "auto";  // a former name of "best", which is still understood

std::span<const DraftMethod> draft_methods();
// Throws UsageError if no method has this name. "auto" is taken for "best".
const DraftMethod& draft_method(const std::string& name);
// Throws UsageError if the options contradict each other.
void check_draft_options(const DraftOptions& options);
// The default method for a head of this kind (null: without a head): grafted trees, but the head's
// own method where the options ask for what only that has: a fixed tree, an ablation.
const DraftMethod& default_draft_method(const DraftHead* head, const DraftOptions& options);

// Both first check the plan and reserve the limits of the method, and throw Error. make_drafter
// loads the weights if the source has none.
std::shared_ptr<const DraftWeights> load_draft_weights(const DraftSource& source);
std::unique_ptr<Drafter> make_drafter(DraftSource source);
// A drafter that proposes only the root: plain decoding.
std::unique_ptr<Drafter> make_none();

}  // namespace aerie
