// The files of a target and its head: opened and checked, but not loaded; and the memory that they
// will need.
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

constexpr int kDefaultContext = 4096;  // or the model's context, if that is smaller
// The model's own context if it takes at most half of the device's memory together with the
// weights; else the largest that does, and at least kDefaultContext.
constexpr int kFittingContext = -1;
// As many tokens as fit into half of the device's memory together with the weights; at least one
// context, at most one for each sequence.
constexpr int64_t kFittingCache = -1;

// How far loading has come.
struct LoadProgress {
    enum class Stage { device, model, head, costs } stage;
    std::string line;            // for people: "loading models/x: 12 of 99 MiB"
    size_t done = 0, total = 0;  // bytes of weights; both 0 where it is not known
};

struct LoadOptions {
    std::string device;                                  // "": the best device
    int threads = 0;                                     // CPU only; 0: one per core
    std::filesystem::path model;                         // a resolved folder or file
    std::filesystem::path head;                          // for methods that draft with one
    std::vector<std::filesystem::path> more_heads = {};  // for `auto`
    HeadOptions head_options;
    std::optional<DType> weights;        // unset: as stored
    std::optional<DType> draft_weights;  // type for the head; unset: see ModelFiles
    DType kv = DType::F16;
    int context = 0;  // 0: kDefaultContext; or kFittingContext
    int prefill_rows = kPrefillRows;
    int sequences = 1;  // most sequences
    // Tokens in the KV cache of all sequences together, at least a context; 0: each has room for a
    // whole context; or kFittingCache.
    int64_t cache_tokens = 0;
    int sequences_in_pass = 1;
    DraftOptions draft;
    bool profile = false;         // the device times each op
    std::filesystem::path cache;  // folder for measured costs; empty: nothing is kept
    std::function<void(const LoadProgress&)> on_progress;  // may be empty
    // Called with the reason if the head's weights cannot be used; the model then goes on as one
    // without a head. Empty: that is an error.
    std::function<void(const std::string&)> on_unfit_head;

    // The same for a device, which only has lines to say.
    std::function<void(const std::string&)> on_device_progress() const;
};

// Bytes by purpose, known before anything is loaded.
struct MemoryPlan {
    size_t target_weights = 0, head_weights = 0;
    WeightTypes target_types, head_types;  // bytes of the matrices in these, by type
    size_t kv_cache = 0;                   // the target's
    size_t scratch = 0;  // activations, logits, the head's buffers and cache, thread scratch
    size_t program = 0;  // code, tokenizer, allocator, and texts that drafters keep on the host

    size_t total() const;  // SIZE_MAX: the sum overflows
};

struct ModelFiles {
    ModelSource target;
    ModelConfig config;
    std::optional<ModelSource> head;
    std::optional<HeadConfig> head_config;
    int context = 0;
    int64_t cache_tokens = 0;  // as in BatchLimits
    // Type of the head's weights: Q8_0, or Q4_0 beside a Q4_0 target, if its shape allows it; it
    // never changes the output. A language model with a quantised file stays as it is.
    std::optional<DType> draft_weights;
    std::vector<int32_t> draft_ids;  // reduced vocabulary of an EAGLE-1/2 head; empty: all ids
    std::vector<ModelFiles> others;  // the same target with each further head

    // Throws Error or UsageError.
    static ModelFiles open(const LoadOptions& options);
    // The same with random weights, without files. They are stored in the types that `options` ask
    // for if these are floats, else in f16.
    static ModelFiles random(const std::string& name, const ModelConfig& config,
                             const LoadOptions& options);

    // Makes tensors of types that the device cannot store be read as Q8_0. Must be called before
    // any function below that counts bytes or loads.
    void replace_unstorable(const Backend& backend);

    // Settles kFittingContext and kFittingCache for this device. Until then the context is
    // kDefaultContext, and the cache has room for one.
    void fit_context(const LoadOptions& options, const Backend& backend);

    BatchLimits limits(const LoadOptions& options) const {
        return {.context = context,
                .kv = options.kv,
                .prefill_rows = options.prefill_rows,
                .sequences_in_pass = options.sequences_in_pass,
                .open_sequences = options.sequences,
                .cache_tokens = cache_tokens};
    }
    // The plan of a drafter over these files; it refers to them and to `draft`.
    DraftPlan draft_plan(const DraftOptions& draft, const LoadOptions& options,
                         const BatchLimits& limits) const;
    // Bytes of the matrices on a device, by type. draft_types is for the options' method.
    WeightTypes target_types(const LoadOptions& options) const;
    WeightTypes draft_types(const LoadOptions& options) const;
    MemoryPlan plan(const LoadOptions& options, const Backend& backend) const;
    // Whether the plan takes at most this share of the device's memory, and exceeds none of its
    // limits.
    bool fits_in_memory(const LoadOptions& options, const Backend& backend, double share = 1) const;
    // The largest context, up to the model's, with which that is so; 0: none.
    int largest_context(const LoadOptions& options, const Backend& backend, double share = 1);
    // The limits that target and head need. Throws Error naming the file if the device allows less.
    Limits limits(const LoadOptions& options, const Capabilities& device) const;
    // Also sets the tokens of the cache, as far as they follow from the context.
    void set_context(int positions, const LoadOptions& options);
    // Reserves these limits before anything is loaded. Also throws Error if the host's memory
    // cannot hold the plan.
    void reserve(const LoadOptions& options, Backend& backend) const;
};

// Throws Error if there is no tokenizer, or if it has ids that the model does not have.
Tokenizer load_tokenizer(const ModelFiles& files);

// All ids that end a text: from generation_config.json, else config.json, else the tokenizer.
std::vector<int> eos_ids(const ModelFiles& files, const Tokenizer& tokenizer);

}  // namespace aerie
