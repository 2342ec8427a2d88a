// Experts as config.json describes them, and what each architecture calls them.
#pragma once

#include <string>
#include <vector>

#include "model/config_fields.h"

namespace aerie {

// An architecture whose layers may have experts: fields of config.json, and tensors of a layer.
struct ExpertNames {
    const char* type;  // model_type
    const char *count, *intermediate;
    const char* normalised;  // null: always
    bool some_are_dense;     // whether decoder_sparse_step and mlp_only_layers say which layers
    const char *router, *experts;
    const char *gate, *up, *down;  // of an expert
};
const ExpertNames* find_expert_names(const std::string& type);  // null: it has none

struct ExpertConfig {
    int count = 0;                // of a layer; 0: all layers are dense
    int chosen = 0;               // by each row
    int intermediate = 0;         // columns of one
    bool normalised = false;      // whether the weights of a row add up to 1
    int step = 1;                 // every step-th layer has experts
    std::vector<int> dense = {};  // that have none all the same
    const ExpertNames* names = nullptr;

    bool in_layer(int layer) const;
};

// Of a model with so many layers. Throws Error.
ExpertConfig parse_experts(const Fields& fields, const ExpertNames& names, int layers);

// Adds to a config.json what it lacks of them.
void add_experts(Json& json, const ExpertConfig& config);

}  // namespace aerie
