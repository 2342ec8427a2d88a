// Decides whether a comparison passes, by one table of tolerances and one list of checks.
#pragma once

#include <string>
#include <vector>

#include "measure/compare.h"

namespace aerie {

// Allowed differences between devices. Each device has its own order of float sums. The resulting
// differences grow when keys and values are rounded to f16, and activations to int8.
struct Tolerance {
    const char* name;  // "f32": the weights that it is for
    double op;         // relative error of an op, given the reference's inputs
    double state;      // relative error of the final hidden state, with all errors carried
    double kl_mean;    // nats, over all positions
    double kl_most;    // nats, at any position
    double margin;     // difference of reference logits: closer tokens may be chosen differently
};

// For f32 weights and KV cache; for 16-bit weights or KV cache; for weights of which some are
// quantised.
extern const Tolerance kTolerances[3];
const Tolerance& tolerance(const WeightTypes& weights, DType kv);

struct Check {
    std::string device;
    std::string name;  // "ops", "final state", ...
    bool passed = false;
    std::string finding;  // one line that says what was found where
    double value = 0;     // the measured value, in the unit of the limit
    double limit = 0;
};

struct Verdict {
    Tolerance tolerance;
    std::vector<Check> checks;

    bool passed() const;
    const Check* first_failure() const;  // nullptr: none
};

Verdict judge(const Comparison& comparison);

// Formats errors as findings print them: "1.2e-7", "1e-4", "0", "NaN", "infinity".
std::string scientific(double value);

// KL(reference || device) over all positions of all prompts.
struct KlSummary {
    double mean = 0, most = 0;
    int positions = 0;
    int agreements = 0;       // positions with the same likeliest token
    double worst_margin = 0;  // over the other positions
};
KlSummary summarise_kl(const ComparedDevice& device);

}  // namespace aerie
