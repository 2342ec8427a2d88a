// How tokens are chosen from rows of logits. All of this data lies on the device beside the rows,
// so a recording serves every temperature and penalty, and one pass may choose for sequences with
// different settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/tensor.h"

namespace aerie {

// Filters of a distribution, applied in this order: temperature, top-k, top-p, min-p. Ties at a cut
// go to the lowest id. Temperature 0 means argmax, without any filter.
struct Filters {
    float temperature = 0;
    int top_k = 0;    // 0: off
    float top_p = 1;  // 1: off
    float min_p = 0;  // 0: off
};

// Penalties on the logits of tokens that a sequence has seen, applied before everything else.
struct Penalties {
    float repetition = 1;  // divides positive logits, multiplies negative ones
    float frequency = 0;   // subtracted once for each time that a token was put out
    float presence = 0;    // subtracted if a token was put out at all

    bool any() const { return repetition != 1 || frequency != 0 || presence != 0; }
};

// The word that a sequence keeps for each token: kPutOut for each time that it was put out, plus
// kInPrompt if the prompt contains it.
constexpr int32_t kPutOut = 2, kInPrompt = 1;

// Divides the differences of ranked candidates before they count as log-probabilities
// (docs/drafting.md section 10): a small softness trusts them more.
struct Softness {
    Softness() = default;
    explicit Softness(float by) : value(by), inverse(float(1 / double(by))) {}

    float value = 1, inverse = 1;
};

// How the token after a row is chosen.
struct RowChoice {
    RowChoice() = default;
    RowChoice(const Filters& filters, const Penalties& penalties);

    float temperature = 0;
    float scale = 0;  // 1 / temperature, at most 3e38; 0 at temperature 0
    int32_t top_k = 0;
    float top_p = 1;
    // temperature * log(min_p): kept logits may lie this far below the best; -inf: off. cutoff_high
    // and cutoff_low are two floats with the same sum.
    double min_p_cutoff = -std::numeric_limits<double>::infinity();
    float cutoff_high = -std::numeric_limits<float>::infinity(), cutoff_low = 0;
    float repetition = 1, frequency = 0, presence = 0;
    int32_t sequence = 0;  // row of Rules::seen
    int32_t noise = 0;     // row of the noise for depth 0
    Softness softness;     // for candidates that are ranked with noise
    int32_t unused = 0;
};
constexpr int kRowChoiceInts = sizeof(RowChoice) / sizeof(int32_t);
constexpr int kSoftnessInt = offsetof(RowChoice, softness) / sizeof(int32_t);

// The logit of a token after penalties. `seen` is the sequence's word for the token.
constexpr float penalised(float logit, const RowChoice& rule, int32_t seen) {
    const int times = seen / kPutOut;
    const float add = times > 0 ? -(rule.frequency * float(times) + rule.presence) : 0;
    return (logit > 0 ? logit / rule.repetition : logit * rule.repetition) + add;
}

// The rules for some rows of logits. Without a block a row's choice is the argmax of its logits.
struct Rules {
    Tensor block;  // I32 [rows, kRowChoiceInts], or one row for all of them
    Tensor seen =
        {};  // I32 [sequences, target vocab], as kPutOut and kInPrompt say; absent: no penalties
    // Whether any row uses this filter, which decides the steps that a device records.
    bool top_k = false, top_p = false;

    // Adds the filters of one row.
    void include(const Filters& filters) {
        top_k |= filters.top_k > 0;
        top_p |= filters.top_p < 1;
    }
};

// Rows of logits, and the processing before a choice. Token ids in it are the target's.
struct Choice {
    Tensor logits;  // F32 [rows, vocab]; not changed
    Rules rules = {};
    Tensor mask = {};    // I32 [rows, words of target ids]: a cleared bit forbids the token
    Tensor id_map = {};  // I32 [1, vocab]: target id of each logit; absent: the same
};

}  // namespace aerie
