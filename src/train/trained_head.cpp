#include "train/trained_head.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace aerie::train {

HeadShape shape_of(const ModelConfig& layer, int taps, int draft_vocab) {
    return {.hidden = layer.hidden,
            .intermediate = layer.intermediate,
            .heads = layer.attention.heads,
            .kv_heads = layer.attention.kv_heads,
            .head_dim = layer.size_of_head(),
            .taps = taps,
            .vocab = layer.vocab,
            .draft_vocab = draft_vocab,
            .epsilon = layer.rms_epsilon,
            .rope_base = layer.rope.theta};
}

TrainedHead::TrainedHead(TrainingDevice& device, const HeadShape& shape)
    : device_(device), shape_(shape) {
    const bool is_eagle3 = shape.draft_vocab > 0;
    const std::string layer = is_eagle3 ? "midlayer." : "layers.0.";
    const int h = shape.hidden, read = is_eagle3 ? 2 * h : h;
    fc = add(is_eagle3 ? shape.taps * h : 2 * h, {{"fc.weight", h}});
    if (!is_eagle3) fc_bias = add(h, {{"fc.bias", 1}});
    qkv = add(read, {{layer + "self_attn.q_proj.weight", shape.query_width()},
                     {layer + "self_attn.k_proj.weight", shape.kv_width()},
                     {layer + "self_attn.v_proj.weight", shape.kv_width()}});
    o = add(shape.query_width(), {{layer + "self_attn.o_proj.weight", h}});
    gate_up = add(h, {{layer + "mlp.gate_proj.weight", shape.intermediate},
                      {layer + "mlp.up_proj.weight", shape.intermediate}});
    down = add(shape.intermediate, {{layer + "mlp.down_proj.weight", h}});
    if (is_eagle3) {
        input_norm = add(h, {{layer + "input_layernorm.weight", 1}});
        hidden_norm = add(h, {{layer + "hidden_norm.weight", 1}});
    }
    post_norm = add(h, {{layer + "post_attention_layernorm.weight", 1}});
    if (is_eagle3) {
        norm = add(h, {{"norm.weight", 1}});
        lm_head = add(h, {{"lm_head.weight", shape.draft_vocab}});
    }
}

TrainedHead::Weight TrainedHead::add(int cols, const std::vector<Part>& parts) {
    int rows = 0;
    for (const Part& part : parts) rows += part.rows;
    Matrix all[4];
    for (Matrix& matrix : all) matrix = device_.allocate(rows, cols);
    int first = 0;
    for (const Part& part : parts) {
        const auto of = [&](const Matrix& m) { return m.row_range(first, part.rows); };
        parameters_.push_back({part.name, of(all[0]), of(all[1]), of(all[2]), of(all[3])});
        first += part.rows;
    }
    return {all[0], all[1]};
}

const Parameter& TrainedHead::parameter(const std::string& name) const {
    const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                    [&](const Parameter& p) { return p.name == name; });
    if (found == parameters_.end()) throw Error("this kind of head has no tensor " + name);
    return *found;
}

void TrainedHead::clear_gradients() {
    for (const Parameter& parameter : parameters_) device_.fill(parameter.gradient, 0);
}

void TrainedHead::forget() {
    for (const Parameter& parameter : parameters_) {
        device_.fill(parameter.mean, 0);
        device_.fill(parameter.square, 0);
    }
    steps_ = 0;
}

double TrainedHead::gradient_norm() {
    double sum = 0;
    for (const Parameter& parameter : parameters_)
        sum += device_.sum_of_squares(parameter.gradient);
    return std::sqrt(sum);
}

double TrainedHead::update(const AdamW& rule, double clip_norm) {
    const double norm = gradient_norm();
    const double clip = std::min(1.0, clip_norm / (norm + 1e-6));
    ++steps_;
    for (const Parameter& p : parameters_)
        device_.update(p.value, p.gradient, p.mean, p.square, rule, steps_, clip);
    return norm;
}

}  // namespace aerie::train
