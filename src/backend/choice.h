// How tokens are chosen from rows of logits. All of it lies on the device, beside the rows: what is
// recorded holds for every temperature and penalty, and texts of different ones are chosen for
// together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/tensor.h"

namespace aerie {

// What is kept of a distribution, in this order: temperature, top-k, top-p, min-p. Ties at a cut
// go to the lowest id. Temperature 0 means argmax; then nothing is filtered.
struct Filters {
    float temperature = 0;
    int top_k = 0;    // 0: off
    float top_p = 1;  // 1: off
    float min_p = 0;  // 0: off
};

// What is done to the logits of tokens that a text has seen, before everything else.
struct Penalties {
    float repetition = 1;  // divides positive, multiplies negative ones
    float frequency = 0;   // subtracted once for each time that a token was put out
    float presence = 0;    // subtracted if a token was put out at all

    bool any() const { return repetition != 1 || frequency != 0 || presence != 0; }
};

// What a text has seen of a token, in one word: how often it was put out, and whether its prompt
// has it.
constexpr int32_t kPutOut = 2, kInPrompt = 1;

// By what the differences of ranked candidates are divided before they count as log-probabilities
// (eagle.md section 10): small trusts them more.
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
    // temperature * log(min_p), to which kept logits may lie below the best; -inf: off. And in two
    // floats whose sum it is.
    double least = -std::numeric_limits<double>::infinity();
    float least_high = -std::numeric_limits<float>::infinity(), least_low = 0;
    float repetition = 1, frequency = 0, presence = 0;
    int32_t text = 0;   // its row of Rules::seen
    int32_t noise = 0;  // row of the noise that belongs to depth 0
    Softness softness;  // of candidates that are ranked with noise
    int32_t unused = 0;
};
constexpr int kRowChoiceInts = sizeof(RowChoice) / sizeof(int32_t);
constexpr int kSoftnessInt = offsetof(RowChoice, softness) / sizeof(int32_t);

// The logit of a token that the row's text has seen, as its word says.
constexpr float penalised(float logit, const RowChoice& rule, int32_t seen) {
    const int times = seen / kPutOut;
    const float add = times > 0 ? -(rule.frequency * float(times) + rule.presence) : 0;
    return (logit > 0 ? logit / rule.repetition : logit * rule.repetition) + add;
}

// Of some rows. Absent: argmax of what the model says.
struct Rules {
    Tensor block;  // I32 [rows, kRowChoiceInts], or one row for all of them
    Tensor seen =
        {};  // I32 [texts, target vocab], as kPutOut and kInPrompt say; absent: no penalties
    // Whether any of the rows is cut in this way: the steps that a device records.
    bool top_k = false, top_p = false;

    // That one of the rows is chosen by these.
    void include(const Filters& filters) {
        top_k |= filters.top_k > 0;
        top_p |= filters.top_p < 1;
    }
};

// Logits and what is done to them before a choice. What is said of tokens is in target ids.
struct Choice {
    Tensor logits;  // F32 [rows, vocab]; not changed
    Rules rules = {};
    Tensor mask = {};    // I32 [rows, words of target ids]: a cleared bit forbids the token
    Tensor id_map = {};  // I32 [1, vocab]: target id of each logit; absent: its number
};

}  // namespace aerie
