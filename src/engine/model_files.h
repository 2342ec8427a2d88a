// A target and what drafts for it, as files: opened and checked, not loaded; and the memory that
// they will need.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "draft/methods.h"
#include "engine/batch.h"
#include "engine/head_options.h"
#include "io/model_source.h"
#include "text/tokenizer.h"

namespace aerie {

constexpr int kDefaultContext = 4096;  // or the model's, if that is smaller

struct LoadOptions {
    std::string device;                                  // "": the best
    int threads = 0;                                     // CPU; 0: one per core
    std::filesystem::path model;                         // resolved folders
    std::filesystem::path head;                          // what drafts, for methods that need one
    std::vector<std::filesystem::path> more_heads = {};  // that draft in turn with it
    HeadOptions head_options;
    std::optional<DType> weights;        // unset: as stored
    std::optional<DType> draft_weights;  // of what drafts; unset: see ModelFiles
    DType kv = DType::F16;
    int context = 0;  // 0: kDefaultContext
    int prefill_rows = kPrefillRows;
    int sequences = 1;  // texts that there may be; each has room for a whole context
    DraftOptions draft;
    bool profile = false;         // the device times each op
    std::filesystem::path cache;  // for measured costs; empty: nothing is kept
    std::function<void(const std::string&)> on_progress;  // "loading target", ... May be empty.
};

// Bytes by purpose, known before anything is loaded.
struct MemoryPlan {
    size_t target_weights = 0, head_weights = 0;
    WeightTypes target_types, head_types;  // what of them are matrices
    size_t kv_cache = 0;                   // of the target
    size_t scratch = 0;  // activations, logits, the head's buffers and cache, thread scratch
    size_t program = 0;  // code, tokenizer, allocator, and what drafters on the host keep of texts

    size_t total() const;  // SIZE_MAX: more than counts
};

struct ModelFiles {
    ModelSource target;
    ModelConfig config;
    std::optional<ModelSource> head;
    std::optional<ModelConfig> head_config;
    int context = 0;
    // What the head drafts with: Q8_0, or Q4_0 beside a Q4_0 target, where its shape allows it; it
    // never changes the output. A language model that is quantised in its file stays as it is.
    std::optional<DType> draft_weights;
    std::vector<int32_t> draft_ids;  // tokens that an EAGLE-1/2 head may say; empty: all
    std::vector<ModelFiles> others;  // the same target with each further head

    // Throws Error or UsageError.
    static ModelFiles open(const LoadOptions& options);
    // The same for random weights, which lie in no file; stored in the types that `options` ask for
    // where those are floats, else in f16.
    static ModelFiles random(const std::string& name, const ModelConfig& config,
                             const LoadOptions& options);

    // Has tensors of types that the device cannot store read as q8_0. To be called before anything
    // below that asks for bytes or loads.
    void fit(const Backend& backend);

    BatchLimits limits(const LoadOptions& options) const {
        return {context, options.kv, options.prefill_rows, 1, options.sequences};
    }
    // Of a drafter over these files; refers to them and to `draft`.
    DraftPlan draft_plan(const DraftOptions& draft, const LoadOptions& options,
                         const BatchLimits& limits) const;
    // What the matrices will take on a device. draft_types: of the options' method.
    WeightTypes target_types(const LoadOptions& options) const;
    WeightTypes draft_types(const LoadOptions& options) const;
    MemoryPlan plan(const LoadOptions& options, const Backend& backend) const;
    // Whether that is no more than the device has and can count.
    bool fits(const LoadOptions& options, const Backend& backend) const;
    // The largest context, up to the model's, whose plan fits into the device's memory; 0: none.
    int largest_context(const LoadOptions& options, const Backend& backend);
    // What target and head ask of a backend. Throws Error, naming the file, where it takes less.
    Limits limits(const LoadOptions& options, const Capabilities& device) const;
    // Reserves that, before anything is loaded. Throws Error also where the host's memory cannot
    // hold what is planned.
    void reserve(const LoadOptions& options, Backend& backend) const;
};

// Throws Error if there is none, or it has ids that the model does not know.
Tokenizer load_tokenizer(const ModelFiles& files);

// Every id that ends a text: of generation_config.json, else config.json, else the tokenizer.
std::vector<int> eos_ids(const ModelFiles& files, const Tokenizer& tokenizer);

}  // namespace aerie
