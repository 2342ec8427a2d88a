// Every drafter there is: one row each, in methods.cpp. The command line, the loader, reports and
// tests read this table.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "draft/drafter.h"
#include "draft/options.h"
#include "io/model_source.h"
#include "model/heads.h"

namespace aerie {

// What is known before anything is loaded: values, but for the files, which only checks and loaders
// read.
struct DraftPlan {
    DraftOptions options;
    ModelConfig target;
    const ModelSource* source = nullptr;     // of what drafts; absent where none is needed
    std::optional<ModelConfig> head = {};    // its configuration
    std::vector<int32_t> head_ids = {};      // tokens that an EAGLE-1/2 head may say; empty: all
    std::optional<DType> weights = {};       // unset: as stored
    DType lm_head_type = DType::F32;         // that the target's LM head is stored in
    DType kv = DType::F16;
    int context = 0;                     // most positions of a text
    int pass_rows = 0;                   // most rows that observe is given
    int texts = 1;                       // at a time
    std::vector<DraftPlan> others = {};  // of further heads
};

struct DraftBytes {
    size_t weights = 0, scratch = 0;
    WeightTypes types;  // what of the weights are matrices
};

// Weights on a device, shared by all drafters that are made of them.
class DraftWeights {
  public:
    virtual ~DraftWeights() = default;
};

struct DraftSource {
    Backend& backend;
    const Target& target;
    const DraftPlan& plan;
    std::shared_ptr<const DraftWeights> weights;  // what the row's `load` made
};

enum class DraftNeeds { nothing, head, language_model, what_there_is };

struct DraftMethod {
    std::string name;
    std::string help;  // ends the sentence "--draft name: "
    DraftNeeds needs = DraftNeeds::nothing;
    std::string wants;                // what that is, for people: "a Medusa head"
    std::vector<std::string> beside;  // ends of its name beside MODEL; empty: any
    bool is_replayed = false;  // whether `aerie bench` can measure it with recorded acceptance
    bool is_drawn = false;     // whether its drafts can be drawn, as AcceptRule::ratio wants
    std::function<DraftReach(const DraftPlan&)> reach;
    // Throws Error, unless what lies there can draft for this target. Null: nothing to check.
    std::function<void(const DraftPlan&)> check;
    // What it asks of a backend, and what it allocates there. Empty: nothing.
    std::function<Limits(const DraftPlan&)> limits;
    std::function<DraftBytes(const DraftPlan&)> bytes;
    // Memory of the host, in bytes, that it takes for what texts have said. Empty: next to none.
    std::function<size_t(const DraftPlan&)> host_bytes;
    // What its weights are called: methods that name the same ones share them. Empty: it has none.
    std::string weights;
    std::shared_ptr<const DraftWeights> (*load)(const DraftSource&) = nullptr;  // null: without
    std::function<std::unique_ptr<Drafter>(const DraftSource&)> make;
};

constexpr const char* kNoDrafts = "none";  // plain decoding

std::span<const DraftMethod> draft_methods();
// Throws UsageError for a name that is none.
const DraftMethod& draft_method(const std::string& name);
// Throws UsageError where what is asked for does not go together.
void check_draft_options(const DraftOptions& options);
// What drafts where nothing is asked for.
const DraftMethod& default_draft_method(HeadKind head);

// Both check and reserve what the row asks for first; a drafter without weights loads them. Both
// throw Error.
std::shared_ptr<const DraftWeights> load_draft_weights(const DraftSource& source);
std::unique_ptr<Drafter> make_drafter(DraftSource source);
// A bare root each time: plain decoding.
std::unique_ptr<Drafter> make_none();

}  // namespace aerie
