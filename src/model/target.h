// The target model: what every architecture offers to the engine and to drafters.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/kv_cache.h"
#include "model/weights.h"

namespace aerie {

// Hidden states that a drafter wants: 0 .. layers-1 is the residual stream at that layer's input,
// `layers` is the state after the final norm (what the LM head reads).
using Taps = std::vector<int>;

struct TargetPass {
    Rows rows;
    const KvCache* kv = nullptr;
    std::span<const int> taps;
    Tensor features;  // out: F32 [M, taps * hidden]; absent without taps
    Tensor logits;    // out: F32 [n <= M, vocab], of the last n rows
};

struct TargetLimits {
    int rows = 0;       // most rows of a pass
    int positions = 0;  // RoPE table: context plus the deepest draft
};

// What the ops of a pass are called, in the order of their calls: those before the layers, of each
// layer, and after them. For who observes a pass without taps (backend/observed.h).
struct OpNames {
    std::vector<std::string> before, layer, after;
};

class Target {
  public:
    virtual ~Target() = default;
    virtual void forward(const TargetPass& pass) = 0;
    // The LM head once more, in another type, for who drafts with it.
    virtual std::unique_ptr<Weight> copy_lm_head(DType as) const = 0;
    virtual OpNames op_names() const = 0;

    const ModelConfig& config() const { return config_; }
    const Weight& embedding() const { return *embedding_; }
    const Weight& lm_head() const { return lm_head_ ? *lm_head_ : *embedding_; }

  protected:
    ModelConfig config_;
    std::unique_ptr<Weight> embedding_, lm_head_;  // no lm_head_: tied
};

// Throws UsageError unless every token is one of the model's.
void check_tokens(std::span<const int> tokens, const ModelConfig& config);

// Throws Error for an architecture that is not known or tensors that do not fit.
std::unique_ptr<Target> make_target(Backend& be, const ModelConfig& config,
                                    const Checkpoint& checkpoint, std::optional<DType> weights,
                                    const TargetLimits& limits);

// Activations and tables that make_target allocates besides the weights.
size_t target_scratch_bytes(const ModelConfig& config, const TargetLimits& limits);

std::unique_ptr<Target> make_llama(Backend& be, const ModelConfig& config,
                                   const Checkpoint& checkpoint, std::optional<DType> weights,
                                   const TargetLimits& limits);

}  // namespace aerie
