// One row per architecture.
#include "model/expert_config.h"

#include <algorithm>

#include "backend/routing.h"

namespace aerie {

namespace {

constexpr ExpertNames kExpertNames[] = {
    {.type = "mixtral",
     .count = "num_local_experts",
     .intermediate = "intermediate_size",
     .normalised = nullptr,
     .some_are_dense = false,
     .router = "block_sparse_moe.gate.weight",
     .experts = "block_sparse_moe.experts.",
     .gate = "w1.weight",
     .up = "w3.weight",
     .down = "w2.weight"},
    {.type = "qwen3_moe",
     .count = "num_experts",
     .intermediate = "moe_intermediate_size",
     .normalised = "norm_topk_prob",
     .some_are_dense = true,
     .router = "mlp.gate.weight",
     .experts = "mlp.experts.",
     .gate = "gate_proj.weight",
     .up = "up_proj.weight",
     .down = "down_proj.weight"},
};

std::vector<int> parse_layers(const Fields& fields, const char* key, int layers) {
    std::vector<int> numbers;
    const Json* value = fields.find(key);
    if (!value) return numbers;
    const auto fail = [&] {
        fields.fail(std::string("'") + key + "' must be a list of layers below " +
                    std::to_string(layers));
    };
    if (!value->array() || value->array()->size() > size_t(layers)) fail();
    for (const Json& item : *value->array()) {
        int64_t number = 0;
        if (!item.integer(number) || number < 0 || number >= layers) fail();
        numbers.push_back(int(number));
    }
    return numbers;
}

}  // namespace

const ExpertNames* find_expert_names(const std::string& type) {
    for (const ExpertNames& names : kExpertNames)
        if (type == names.type) return &names;
    return nullptr;
}

bool ExpertConfig::in_layer(int layer) const {
    return count > 0 && (layer + 1) % step == 0 &&
           std::find(dense.begin(), dense.end(), layer) == dense.end();
}

ExpertConfig parse_experts(const Fields& fields, const ExpertNames& names, int layers) {
    constexpr const char* kChosen = "num_experts_per_tok";
    ExpertConfig config;
    config.names = &names;
    config.count = fields.integer(names.count, 1, kMaxExperts);
    config.chosen = fields.integer(kChosen, 1, kMaxExperts);
    if (config.chosen > config.count)
        fields.fail(std::string("'") + kChosen + "' is " + std::to_string(config.chosen) +
                    ", more than the " + std::to_string(config.count) + " of '" + names.count +
                    "'");
    if (config.chosen > kMaxChosen)
        fields.fail(std::string("'") + kChosen + "' is " + std::to_string(config.chosen) +
                    "; at most " + std::to_string(kMaxChosen) + " are implemented");
    config.intermediate = fields.integer(names.intermediate, 1, 1 << 18);
    config.normalised = !names.normalised || fields.boolean(names.normalised, false);
    if (!names.some_are_dense) return config;
    config.step = fields.integer("decoder_sparse_step", 1, 1024, 1);
    config.dense = parse_layers(fields, "mlp_only_layers", layers);
    return config;
}

void add_experts(Json& json, const ExpertConfig& config) {
    const ExpertNames& names = *config.names;
    json.set(names.count, config.count);
    json.set("num_experts_per_tok", config.chosen);
    if (!json.find(names.intermediate)) json.set(names.intermediate, config.intermediate);
    if (names.normalised) json.set(names.normalised, config.normalised);
    if (!names.some_are_dense) return;
    json.set("decoder_sparse_step", config.step);
    json.set("mlp_only_layers", Json::Array(config.dense.begin(), config.dense.end()));
}

}  // namespace aerie
