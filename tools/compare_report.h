// What `aerie compare` reports, in its three forms.
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
    // Of each prompt: the text of each of its tokens and then of the reference's answer.
    std::vector<std::vector<std::string>> pieces;
    // [prompt][device]: the piece of the device's own token where its text forks; empty: it ends.
    std::vector<std::vector<std::string>> fork_pieces;

    const ComparedDevice& reference() const { return comparison.devices.front(); }
};

Json compare_json(const CompareReport& report);          // schema aerie-compare-1
std::string compare_table(const CompareReport& report);  // for a terminal
std::string compare_page(const CompareReport& report);   // HTML, complete in itself

// What stands in one row of a table: a layer, or an op outside of the layers.
struct LayerSummary {
    std::string name;         // "layer 3", "final norm"
    const ComparedOp* last;   // its last op: what goes on from here
    const ComparedOp* worst;  // the one that errs most given the reference's inputs
    int ops = 0, identical = 0;
};
std::vector<LayerSummary> summarise_layers(const ComparedDevice& device);

}  // namespace aerie
