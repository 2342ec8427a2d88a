// How well a target predicts given text: the negative log-likelihood of its tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "model/kv_pool.h"
#include "model/target.h"

namespace aerie {

// Documents of a text file, which a line "---8<---" divides; the line breaks around it belong to
// neither side.
std::vector<std::string_view> split_documents(std::string_view text);

struct PerplexityTask {
    std::vector<std::vector<int>> documents;  // ids of each, BOS included where the model wants it
    // Documents are cut into windows of this many tokens that know nothing of each other; the first
    // token of each is not scored. No more than the target's positions or the cache's slots.
    int window = 512;
    int pass_rows = 0;                                         // most rows of a pass
    std::function<void(int64_t done, int64_t all)> on_window;  // tokens scored; may be empty
    std::function<bool()> cancelled;                           // asked once a window; may be empty
};

struct Perplexity {
    int64_t tokens = 0;  // scored
    double nll = 0;      // sum over them, in nats

    double value() const;  // exp(nll / tokens)
};

int64_t scored_tokens(const PerplexityTask& task);

// Throws UsageError if there is nothing to score, Error where the model computes no number. Stops
// early, with what it has, when cancelled.
Perplexity measure_perplexity(Backend& be, Target& target, KvPool& kv, const PerplexityTask& task);

}  // namespace aerie
