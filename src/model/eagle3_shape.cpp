// The same key means inputs of layers to some exports and outputs to others; no file says which.
#include "model/eagle3_shape.h"

#include <algorithm>

namespace aerie {

namespace {

constexpr const char* kTaps = "eagle_aux_hidden_state_layer_ids";
constexpr int kMostTaps = 8;

const Json* find_taps(const Fields& fields) {
    if (const Json* taps = fields.find(kTaps)) return taps;
    const Json* inner = fields.find("eagle_config");
    const Json* taps = inner ? inner->find(kTaps) : nullptr;
    return taps && !taps->is_null() ? taps : nullptr;
}

// Ascending, as the features stand beside each other.
std::vector<int> layer_ids(const Fields& fields, const Json& list) {
    constexpr int kMostLayers = 1024;
    std::vector<int> ids;
    const std::string expected = std::string("'") + kTaps + "' must be a list of 1 to " +
                                 std::to_string(kMostTaps) + " ascending layers";
    if (!list.array() || list.array()->empty() || list.array()->size() > size_t(kMostTaps))
        fields.fail(expected);
    for (const Json& item : *list.array()) {
        int64_t id = 0;
        if (!item.integer(id) || id < 0 || id > kMostLayers || (!ids.empty() && id < ids.back()))
            fields.fail(expected);
        ids.push_back(int(id));
    }
    return ids;
}

}  // namespace

bool is_eagle3(const Fields& fields) {
    for (const char* key : {"draft_vocab_size", "truncated_vocab_size", "eagle_config", kTaps})
        if (fields.find(key)) return true;
    if (fields.string("speculators_model_type", "") == "eagle3") return true;
    const Json* classes = fields.find("architectures");
    if (!classes || !classes->array()) return false;
    return std::any_of(classes->array()->begin(), classes->array()->end(), [](const Json& name) {
        return name.string() && name.string()->find("Eagle3") != std::string::npos;
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
    const Json* taps = find_taps(fields);
    if (!taps) {
        shape.taps_rule = "the usual layers";
        return shape;
    }
    shape.taps = layer_ids(fields, *taps);
    // A head that begins with the first layer's input would see hardly more than the embedding.
    const bool are_outputs = shape.taps.front() == 1;
    shape.taps_rule = are_outputs ? "its file's ids, as outputs of layers"
                                  : "its file's ids, as inputs of layers";
    for (int& tap : shape.taps) tap += are_outputs;
    return shape;
}

std::vector<int> usual_taps(int layers) {
    std::vector<int> taps = {std::min(2, layers), layers / 2, std::max(layers - 3, layers / 2)};
    std::sort(taps.begin(), taps.end());  // of very few layers
    return taps;
}

}  // namespace aerie
