// Everything that a generation needs, loaded: backend, target, head, tokenizer, session.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/session.h"
#include "io/checkpoint.h"
#include "text/tokenizer.h"

namespace aerie {

constexpr int kDefaultContext = 4096;  // or the model's, if that is smaller

struct RuntimeOptions {
    std::string device;                  // "": the best
    int threads = 0;                     // CPU; 0: one per core
    std::filesystem::path model;         // resolved folders
    std::filesystem::path head;          // unless draft.kind is none
    std::optional<DType> weights;        // unset: as stored
    std::optional<DType> draft_weights;  // of the head and its LM head; unset: see ModelFiles
    DType kv = DType::F16;
    int context = 0;  // 0: kDefaultContext
    int prefill_rows = kPrefillRows;
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
    size_t program = 0;  // code, tokenizer and allocator
    size_t loading = 0;  // file data while weights are packed, beyond the KV cache that comes later

    size_t total() const {
        return target_weights + head_weights + kv_cache + scratch + program + loading;
    }
};

// The models' files, opened and checked but not loaded.
struct ModelFiles {
    ModelConfig config;
    Checkpoint checkpoint;
    std::optional<ModelConfig> head_config;
    std::optional<Checkpoint> head_checkpoint;
    int context = 0;
    // What the head drafts with: Q8_0, or Q4_0 beside a Q4_0 target, where its shape allows it; it
    // never changes the output.
    std::optional<DType> draft_weights;

    // Throws Error or UsageError.
    static ModelFiles open(const RuntimeOptions& options);
    // The same for random weights, which lie in no file; stored in the types that `options` ask for
    // where those are floats, else in f16.
    static ModelFiles random(const std::string& name, const ModelConfig& config,
                             const RuntimeOptions& options);
    // What the matrices will take on a device. head_types: there must be a head.
    WeightTypes target_types(const RuntimeOptions& options) const;
    WeightTypes head_types(const RuntimeOptions& options) const;
    MemoryPlan plan(const RuntimeOptions& options, const Backend& backend) const;
    // What target and head ask of a backend. Throws Error, naming the file, where it takes less.
    Limits limits(const RuntimeOptions& options, const Capabilities& device) const;
    // Reserves that, before anything is loaded. Throws Error also where the host's memory cannot
    // hold what is planned.
    void reserve(const RuntimeOptions& options, Backend& backend) const;
};

// Throws Error naming the folder if the tokenizer has ids that the model does not know.
void check_tokenizer_fits(const Tokenizer& tokenizer, const ModelConfig& config,
                          const std::filesystem::path& folder);

// Every id that ends a text: of generation_config.json, else config.json, else the tokenizer.
std::vector<int> eos_ids(const GenerationConfig& generation, const ModelConfig& config,
                         const Tokenizer& tokenizer);

class Runtime {
  public:
    // Throws Error naming the file that is wrong.
    explicit Runtime(const RuntimeOptions& options);
    Runtime(const Runtime&) = delete;  // the models refer to the files
    Runtime& operator=(const Runtime&) = delete;

    Backend& backend() { return *backend_; }
    Target& target() { return *target_; }
    Session& session() { return *session_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    const GenerationConfig& generation_config() const { return generation_config_; }
    std::vector<int> eos_ids() const {
        return aerie::eos_ids(generation_config_, files_.config, tokenizer_);
    }
    // After the work: where its timings say that the cached costs were far off, as after a
    // measurement on a busy machine, the next start measures again.
    void review_costs() const;

  private:
    void learn_costs(const RuntimeOptions& options);

    ModelFiles files_;
    GenerationConfig generation_config_;
    Tokenizer tokenizer_;
    std::unique_ptr<Backend> backend_;
    std::unique_ptr<Target> target_;
    std::unique_ptr<Drafter> drafter_;
    std::unique_ptr<Session> session_;
    std::filesystem::path cost_file_;  // empty: nothing is kept
};

}  // namespace aerie
