// The report of `aerie compare`, in three forms.
#pragma once

#include <string>
#include <vector>

#include "io/json.h"
#include "measure/verdict.h"

namespace aerie {

// A comparison with the names that a report needs.
struct CompareReport {
    std::string model, weights, kv;
    std::string draft_weights, tree;  // empty: nothing was drafted
    int max_tokens = 0;
    Comparison comparison;
    Verdict verdict;
    // [prompt]: the text of each token of the prompt, then of the reference's answer.
    std::vector<std::vector<std::string>> pieces;
    // [prompt][device]: the text of the device's own token where it forks; empty: its text ends
    // there.
    std::vector<std::vector<std::string>> fork_pieces;

    const ComparedDevice& reference() const { return comparison.devices.front(); }
};

Json compare_json(const CompareReport& report);          // schema aerie-compare-1
std::string compare_table(const CompareReport& report);  // for a terminal
std::string compare_page(const CompareReport& report);   // HTML, self-contained

// One row of a table: a layer, or an op outside of the layers.
struct LayerSummary {
    std::string name;         // "layer 3", "final norm"
    const ComparedOp* last;   // its last op, which has the layer's output
    const ComparedOp* worst;  // the op with the largest error given the reference's inputs
    int ops = 0, identical = 0;
};
std::vector<LayerSummary> summarise_layers(const ComparedDevice& device);

}  // namespace aerie
