// The same key means inputs of layers in some exports and outputs in others; no file says which.
#include "draft/heads/eagle3_shape.h"

#include <algorithm>

#include "core/ascii.h"
#include "draft/heads/eagle.h"
#include "io/foreign_drafters.h"
#include "model/make/shapes.h"

namespace aerie {

namespace {

constexpr const char* kTaps = "eagle_aux_hidden_state_layer_ids";
constexpr const char* kOutputs = "target_layer_ids";  // DeepSpec's key: outputs of layers, from 0
constexpr int kMaxTaps = 8;

const Json* find_taps(const Fields& fields) {
    if (const Json* taps = fields.find(kTaps)) return taps;
    const Json* inner = fields.find("eagle_config");
    const Json* taps = inner ? inner->find(kTaps) : nullptr;
    return taps && !taps->is_null() ? taps : nullptr;
}

// Layers in ascending order, which is the order of their features in the input of fc.
std::vector<int> layer_ids(const Fields& fields, const char* key, const Json& list) {
    constexpr int kMaxLayers = 1024;
    std::vector<int> ids;
    const std::string expected = std::string("'") + key + "' must be a list of 1 to " +
                                 std::to_string(kMaxTaps) + " ascending layers";
    if (!list.array() || list.array()->empty() || list.array()->size() > size_t(kMaxTaps))
        fields.fail(expected);
    for (const Json& item : *list.array()) {
        int64_t id = 0;
        if (!item.integer(id) || id < 0 || id > kMaxLayers || (!ids.empty() && id < ids.back()))
            fields.fail(expected);
        ids.push_back(int(id));
    }
    return ids;
}

// Ignores case: the class is written Eagle3 by some and EAGLE3 by others.
bool names_eagle3(const std::string& text) {
    const std::string name = lower_ascii(text);
    return name.find("eagle3") != name.npos || name.find("eagle-3") != name.npos;
}

// Fills in the tapped layers, and how they were found.
void find_layers(const Fields& fields, Eagle3Shape& shape) {
    if (const Json* taps = find_taps(fields)) {
        shape.taps = layer_ids(fields, kTaps, *taps);
        // A head that reads the input of layer 1 first would see hardly more than the embedding, so
        // a list that begins with 1 names outputs.
        const bool are_outputs = shape.taps.front() == 1;
        shape.taps_rule = are_outputs ? "its file's ids, as outputs of layers"
                                      : "its file's ids, as inputs of layers";
        for (int& tap : shape.taps) tap += are_outputs;
    } else if (const Json* outputs = fields.find(kOutputs)) {
        shape.taps = layer_ids(fields, kOutputs, *outputs);
        shape.taps_rule = "its file's ids, as outputs of layers";
        for (int& tap : shape.taps) ++tap;
    } else {
        shape.taps_rule = "the usual layers";
    }
}

// `hidden` is the one of the head's layer, `vocab` the one of its target.
Eagle3Shape parse_eagle3(const Fields& fields, int hidden, int vocab) {
    Eagle3Shape shape;
    const char* vocab_key =
        fields.find("truncated_vocab_size") ? "truncated_vocab_size" : "draft_vocab_size";
    shape.vocab = fields.integer(vocab_key, 2, vocab, vocab);
    shape.target_hidden = fields.integer("target_hidden_size", 16, 1 << 16, hidden);
    shape.norms_taps = fields.boolean("fc_norm", false);
    shape.norms_features = fields.boolean("norm_before_fc", false);
    shape.norms_residual = fields.boolean("norm_before_residual", false);
    shape.norms_state = fields.boolean("norm_output", false);
    const Json* inner = fields.find("eagle_config");
    if (inner && !inner->object()) fields.fail("'eagle_config' must be an object");
    find_layers(fields, shape);
    return shape;
}

}  // namespace

bool is_eagle3(const Fields& fields) {
    if (foreign_drafter(fields.json())) return false;
    for (const char* key : {"draft_vocab_size", "truncated_vocab_size", "eagle_config", kTaps})
        if (fields.find(key)) return true;
    if (fields.string("speculators_model_type", "") == "eagle3") return true;
    const Json* classes = fields.find("architectures");
    if (!classes || !classes->array()) return false;
    return std::any_of(classes->array()->begin(), classes->array()->end(), [](const Json& name) {
        return name.string() && names_eagle3(*name.string());
    });
}

HeadConfig eagle3_config(const ModelSource& source) {
    const Fields all(source.config);
    // The head has one layer, whatever its file says: some give the target's number.
    HeadConfig config{parse_layer_config(layer_fields(all))};
    config.architecture = "eagle3";
    Eagle3Shape shape = parse_eagle3(all, config.hidden, config.vocab);
    const auto has = [&](const char* tensor) { return source.tensors.find(tensor) != nullptr; };
    shape.norms_taps |= has("fc_norm.0.weight");
    shape.norms_features |= has("input_norm.weight");
    config.qk_norm = has("midlayer.self_attn.q_norm.weight");
    if (shape.norms_taps && shape.norms_features)
        throw Error(source.path.string() + ": both 'fc_norm' and 'input_norm'");
    config.own = std::move(shape);
    return config;
}

Json eagle3_json(const HeadConfig& head) {
    ModelConfig layer = head;
    layer.architecture = "llama";
    const Eagle3Shape& shape = eagle3_shape(head);
    Json json = config_json(layer, "LlamaForCausalLMEagle3");
    json.set("draft_vocab_size", shape.vocab);
    json.set("target_hidden_size", shape.target_hidden);
    json.set("norm_before_residual", shape.norms_residual);
    json.set("norm_before_fc", shape.norms_features);
    json.set("norm_output", shape.norms_state);
    if (!shape.taps.empty()) json.set(kTaps, Json::Array(shape.taps.begin(), shape.taps.end()));
    return json;
}

HeadConfig eagle3_head_shape(const ModelConfig& target) {
    constexpr int kVocab = 32000;
    HeadConfig head = eagle_shape(target);
    head.architecture = "eagle3";
    head.rope = {};
    head.tied_embeddings = false;
    head.qkv_bias = head.attention_output_bias = head.mlp_bias = false;
    Eagle3Shape shape;
    shape.vocab = std::min(kVocab, target.vocab);
    shape.target_hidden = target.hidden;
    head.own = std::move(shape);
    return head;
}

std::vector<int> usual_taps(int layers) {
    std::vector<int> taps = {std::min(2, layers), layers / 2, std::max(layers - 3, layers / 2)};
    std::sort(taps.begin(), taps.end());  // matters for very few layers
    return taps;
}

}  // namespace aerie
