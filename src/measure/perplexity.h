// How well a target predicts a given text: the negative log-likelihood of its tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/kv_pool.h"
#include "model/target.h"

namespace aerie {

struct PerplexityTask {
    std::vector<std::vector<int>> documents;  // ids, with BOS if the model wants it
    // Documents are cut into independent windows of this many tokens. The first token of a window
    // is not scored. At most the target's positions and the cache's slots.
    int window = 512;
    int pass_rows = 0;                                         // most rows of a pass
    std::function<void(int64_t done, int64_t all)> on_window;  // tokens scored; may be empty
    std::function<bool()> cancelled;                           // asked once a window; may be empty
};

struct Perplexity {
    int64_t tokens = 0;  // scored tokens
    double nll = 0;      // sum over them, in nats

    double value() const;  // exp(nll / tokens)
};

int64_t scored_tokens(const PerplexityTask& task);

// Throws UsageError if there is nothing to score, and Error if a logit is not finite. When
// cancelled, it stops early and returns the result so far.
Perplexity measure_perplexity(Backend& be, Target& target, KvPool& kv, const PerplexityTask& task);

}  // namespace aerie
