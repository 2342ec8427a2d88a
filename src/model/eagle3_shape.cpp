// The same key means inputs of layers in some exports and outputs in others; no file says which.
#include "model/eagle3_shape.h"

#include <algorithm>
#include <cctype>

#include "io/foreign_drafters.h"

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
bool names_eagle3(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
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

std::vector<int> usual_taps(int layers) {
    std::vector<int> taps = {std::min(2, layers), layers / 2, std::max(layers - 3, layers / 2)};
    std::sort(taps.begin(), taps.end());  // matters for very few layers
    return taps;
}

}  // namespace aerie
