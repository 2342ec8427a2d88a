// The target model: the interface of every architecture to the engine and to drafters.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/kv_pool.h"
#include "model/weights.h"

namespace aerie {

// Hidden states that a drafter wants: 0 .. layers-1 is the residual stream at that layer's input,
// `layers` is the state after the final norm (what the LM head reads).
using Taps = std::vector<int>;

struct TargetPass {
    Rows rows;
    const KvPool* kv = nullptr;
    std::span<const int> taps;
    Tensor features;  // out: F32 [M, taps * hidden]; absent without taps
    Tensor logits;    // out: F32 [n, vocab] of the last n rows
};

// Label of the op that computes the state that the LM head reads.
constexpr const char* kFinalNorm = "final norm";

struct TargetLimits {
    int rows = 0;       // most rows of a pass
    int positions = 0;  // RoPE table: context plus the deepest draft
};

class Target {
  public:
    virtual ~Target() = default;
    virtual void forward(const TargetPass& pass) = 0;
    // Loads the LM head again in another type, for drafting; with `rows`, only these rows of it.
    virtual std::unique_ptr<Weight> copy_lm_head(DType as,
                                                 std::span<const int32_t> rows = {}) const = 0;

    const ModelConfig& config() const { return config_; }
    const Weight& embedding() const { return *embedding_; }
    const Weight& lm_head() const { return lm_head_ ? *lm_head_ : *embedding_; }

  protected:
    ModelConfig config_;
    std::unique_ptr<Weight> embedding_, lm_head_;  // no lm_head_: tied
};

// Throws UsageError unless every token is one of the model's.
void check_tokens(std::span<const int> tokens, int vocab);

// Throws Error for tensors that do not fit.
std::unique_ptr<Target> make_target(Backend& be, const ModelConfig& config,
                                    const Checkpoint& checkpoint, std::optional<DType> weights,
                                    const TargetLimits& limits);

// Bytes of activations and tables that make_target allocates besides the weights.
size_t target_scratch_bytes(const ModelConfig& config, const TargetLimits& limits);

// Every architecture so far is LLaMA with properties (model/config.h). load_llama asks the loader
// for every tensor, and drops what it gives.
void load_llama(const WeightLoader& loader, const ModelConfig& config);
std::unique_ptr<Target> make_llama(Backend& be, const ModelConfig& config,
                                   const Checkpoint& checkpoint, std::optional<DType> weights,
                                   const TargetLimits& limits);

}  // namespace aerie
