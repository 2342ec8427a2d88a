// Whether a comparison passes: one table of tolerances, one list of checks.
#pragma once

#include <string>
#include <vector>

#include "measure/compare.h"

namespace aerie {

// What devices may differ by. Float sums have one order per device; what follows of that grows with
// what is rounded afterwards: keys and values to f16, activations to int8.
struct Tolerance {
    const char* name;  // "f32": the weights that it is for
    double op;         // relative error of an op that is given the reference's inputs
    double state;      // relative error of the final hidden state, all errors carried
    double kl_mean;    // nats, over all positions
    double kl_most;    // nats, at any position
    double margin;     // of reference logits: a choice between tokens this close may differ
};

// f32 (weights and KV cache); 16-bit weights or KV cache; quantised weights, be it some.
extern const Tolerance kTolerances[3];
const Tolerance& tolerance(const WeightTypes& weights, DType kv);

struct Check {
    std::string device;
    std::string name;  // "ops", "final state", ...
    bool passed = false;
    std::string finding;  // one line: what was found and where
    double value = 0;     // what was measured, in the limit's unit
    double limit = 0;
};

struct Verdict {
    Tolerance tolerance;
    std::vector<Check> checks;

    bool passed() const;
    const Check* first_failure() const;  // nullptr: none
};

Verdict judge(const Comparison& comparison);

// As findings print errors: "1.2e-7", "1e-4", "0", "NaN", "infinity".
std::string scientific(double value);

// KL(reference || device) over all positions of all prompts.
struct KlSummary {
    double mean = 0, most = 0;
    int positions = 0;
    int agreements = 0;       // positions where the likeliest token is the same
    double worst_margin = 0;  // of a position where it is not
};
KlSummary summarise_kl(const ComparedDevice& device);

}  // namespace aerie
