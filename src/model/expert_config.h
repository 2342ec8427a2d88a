// Experts as config.json describes them, and the names that each architecture has for them.
#pragma once

#include <string>
#include <vector>

#include "model/config_fields.h"

namespace aerie {

// The names of an architecture with experts: fields of config.json, and tensors of a layer.
struct ExpertNames {
    const char* type;  // model_type
    const char *count, *intermediate;
    const char* normalised;  // null: always normalised
    bool some_are_dense;     // whether decoder_sparse_step and mlp_only_layers choose the layers
    const char *router, *experts;
    const char *gate, *up, *down;  // name endings of an expert's matrices
};
const ExpertNames* find_expert_names(const std::string& type);  // nullptr: it has no experts

struct ExpertConfig {
    int count = 0;                // per layer; 0: all layers are dense
    int chosen = 0;               // per row
    int intermediate = 0;         // columns of one expert
    bool normalised = false;      // whether the weights of a row add up to 1
    int step = 1;                 // every step-th layer has experts
    std::vector<int> dense = {};  // layers without experts all the same
    const ExpertNames* names = nullptr;

    bool in_layer(int layer) const;
};

// Reads the experts of a model with so many layers. Throws Error.
ExpertConfig parse_experts(const Fields& fields, const ExpertNames& names, int layers);

// Adds the members about experts that a config.json lacks.
void add_experts(Json& json, const ExpertConfig& config);

}  // namespace aerie
