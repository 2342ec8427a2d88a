#include "train/decoder_layer.h"

namespace aerie::train {

LayerPass LayerPass::first_rows(int rows) const {
    LayerPass part = *this;
    for (Matrix LayerPass::*m :
         {&LayerPass::x, &LayerPass::hidden, &LayerPass::qkv, &LayerPass::attended, &LayerPass::lse,
          &LayerPass::middle, &LayerPass::normed, &LayerPass::inverse, &LayerPass::gate_up,
          &LayerPass::gated, &LayerPass::out, &LayerPass::dqkv})
        part.*m = (this->*m).row_range(0, rows);
    return part;
}

DecoderLayer::DecoderLayer(TrainingDevice& device, TrainedHead& head, int max_rows)
    : device_(device), head_(head) {
    const HeadShape& shape = head.shape();
    dgated_ = device.allocate(max_rows, shape.intermediate);
    dgate_up_ = device.allocate(max_rows, 2 * shape.intermediate);
    dnormed_ = device.allocate(max_rows, shape.hidden);
    dattended_ = device.allocate(max_rows, shape.query_width());
}

LayerPass DecoderLayer::make_pass(int rows) {
    const HeadShape& shape = head_.shape();
    const int wide = shape.query_width() + 2 * shape.kv_width();
    const auto matrix = [&](int cols) { return device_.allocate(rows, cols); };
    return {.x = matrix(head_.qkv.value.cols),
            .hidden = matrix(shape.hidden),
            .qkv = matrix(wide),
            .attended = matrix(shape.query_width()),
            .lse = matrix(shape.heads),
            .middle = matrix(shape.hidden),
            .normed = matrix(shape.hidden),
            .inverse = matrix(1),
            .gate_up = matrix(2 * shape.intermediate),
            .gated = matrix(shape.intermediate),
            .out = matrix(shape.hidden),
            .dqkv = matrix(wide)};
}

Matrix DecoderLayer::queries(const Matrix& qkv) const {
    return qkv.col_range(0, head_.shape().query_width());
}

// Queries and keys.
Matrix DecoderLayer::rotated(const Matrix& qkv) const {
    return qkv.col_range(0, head_.shape().query_width() + head_.shape().kv_width());
}

DecoderLayer::Parts DecoderLayer::parts(std::span<const LayerPass> passes, size_t depth,
                                        Matrix LayerPass::*qkv) const {
    const HeadShape& shape = head_.shape();
    Parts found;
    for (size_t j = 0; j <= depth; ++j) {
        const Matrix& all = passes[j].*qkv;
        found.keys.push_back(all.col_range(shape.query_width(), shape.kv_width()));
        found.values.push_back(
            all.col_range(shape.query_width() + shape.kv_width(), shape.kv_width()));
    }
    return found;
}

void DecoderLayer::forward(std::span<LayerPass> passes, size_t depth, const TrainingTexts& texts) {
    const HeadShape& shape = head_.shape();
    LayerPass& pass = passes[depth];
    device_.multiply(Product::a_bt, pass.qkv, pass.x, head_.qkv.value, false);
    device_.rotate(rotated(pass.qkv), texts.positions(int(depth)), shape.head_dim, shape.rope_base,
                   false);
    const std::vector<int> first = texts.first_rows();
    const Parts kv = parts(passes, depth, &LayerPass::qkv);
    device_.attend(pass.attended, pass.lse, queries(pass.qkv), kv.keys, kv.values,
                   {shape.heads, shape.kv_heads, shape.head_dim, first});
    device_.multiply(Product::a_bt, pass.middle, pass.attended, head_.o.value, false);
    device_.add(pass.middle, pass.hidden);
    device_.rms_norm(pass.normed, pass.inverse, pass.middle, head_.post_norm.value, shape.epsilon);
    device_.multiply(Product::a_bt, pass.gate_up, pass.normed, head_.gate_up.value, false);
    device_.gate(pass.gated, pass.gate_up);
    device_.multiply(Product::a_bt, pass.out, pass.gated, head_.down.value, false);
    device_.add(pass.out, pass.middle);
    device_.fill(pass.dqkv, 0);
}

void DecoderLayer::backward(std::span<LayerPass> passes, size_t depth, const TrainingTexts& texts,
                            const Matrix& dout, const Matrix& dx, const Matrix& dhidden) {
    const HeadShape& shape = head_.shape();
    LayerPass& pass = passes[depth];
    const int rows = dout.rows;
    const auto of = [&](const Matrix& scratch) { return scratch.row_range(0, rows); };
    // 1. MLP: dhidden becomes the gradient of `middle`.
    device_.multiply(Product::at_b, head_.down.gradient, dout, pass.gated, true);
    device_.multiply(Product::a_b, of(dgated_), dout, head_.down.value, false);
    device_.gate_back(of(dgate_up_), of(dgated_), pass.gate_up);
    device_.multiply(Product::at_b, head_.gate_up.gradient, of(dgate_up_), pass.normed, true);
    device_.multiply(Product::a_b, of(dnormed_), of(dgate_up_), head_.gate_up.value, false);
    device_.fill(dhidden, 0);
    device_.add(dhidden, dout);
    device_.rms_norm_back(dhidden, head_.post_norm.gradient, of(dnormed_), pass.inverse,
                          pass.middle, head_.post_norm.value);
    // 2. Attention. Keys and values of earlier depths get their part of the gradient, too.
    device_.multiply(Product::at_b, head_.o.gradient, dhidden, pass.attended, true);
    device_.multiply(Product::a_b, of(dattended_), dhidden, head_.o.value, false);
    const std::vector<int> first = texts.first_rows();
    const Parts kv = parts(passes, depth, &LayerPass::qkv);
    const Parts dkv = parts(passes, depth, &LayerPass::dqkv);
    device_.attend_back(queries(pass.dqkv), dkv.keys, dkv.values, of(dattended_), pass.attended,
                        pass.lse, queries(pass.qkv), kv.keys, kv.values,
                        {shape.heads, shape.kv_heads, shape.head_dim, first});
    // 3. All later depths have added to this depth's keys and values by now.
    device_.rotate(rotated(pass.dqkv), texts.positions(int(depth)), shape.head_dim, shape.rope_base,
                   true);
    device_.multiply(Product::at_b, head_.qkv.gradient, pass.dqkv, pass.x, true);
    device_.multiply(Product::a_b, dx, pass.dqkv, head_.qkv.value, false);
}

}  // namespace aerie::train
