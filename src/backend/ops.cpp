// Shape checks of every op, in one place; a backend may rely on them.
#include "backend/backend.h"

#include <cassert>
#include <cmath>

namespace aerie {

namespace {

[[maybe_unused]] bool is(const Tensor& t, DType type, int rows, int cols) {
    return t && t.dtype == type && t.rows == rows && t.cols == cols && t.row_stride >= cols;
}

// Whether both tensors have the same shape and strides.
[[maybe_unused]] bool is_like(const Tensor& a, const Tensor& b) {
    return is(a, b.dtype, b.rows, b.cols) && a.row_stride == b.row_stride;
}

[[maybe_unused]] bool is_f32(const Tensor& t) {
    return t && t.dtype == DType::F32 && t.row_stride >= t.cols;
}

// Whether a matmul may read these rows: floats, or quantised for a quantised weight.
[[maybe_unused]] bool is_activation(const Tensor& t, int rows, int cols) {
    return is(t, DType::F32, rows, cols) || (is(t, DType::I8G32, rows, cols) && cols % kGroup == 0);
}

[[maybe_unused]] bool is_index(const Tensor& t, int count) {
    return is(t, DType::I32, 1, count);
}

[[maybe_unused]] bool is_rows(const Rows& rows, int count) {
    return is(rows.block, DType::I32, count, kRowInts) && rows.block.row_stride == kRowInts;
}

[[maybe_unused]] bool share_bytes(const Tensor& a, const Tensor& b) {
    return a.memory == b.memory &&
           a.offset_bytes < b.offset_bytes + dense_bytes(b.dtype, b.rows, b.row_stride) &&
           b.offset_bytes < a.offset_bytes + dense_bytes(a.dtype, a.rows, a.row_stride);
}

[[maybe_unused]] bool has_aligned_rows(const Tensor& t) {
    constexpr size_t kBytes = 16;
    return t.offset_bytes % kBytes == 0 && size_bytes(t.dtype, size_t(t.row_stride)) % kBytes == 0;
}

[[maybe_unused]] bool is_kv(const KvLayer& kv, const AttentionShape& shape) {
    return kv.k.cols == shape.kv_heads * shape.head_dim && kv.k.cols == kv.v.cols &&
           kv.k.rows == kv.v.rows && kv.k.dtype == kv.v.dtype &&
           (kv.k.dtype == DType::F32 || kv.k.dtype == DType::F16) && kv.k.rows % kPageSize == 0 &&
           has_aligned_rows(kv.k) && has_aligned_rows(kv.v) && kv.page_table.dtype == DType::I32;
}

[[maybe_unused]] bool is_shape(const AttentionShape& s) {
    return s.head_dim > 0 && s.head_dim % 16 == 0 && s.kv_heads > 0 && s.heads % s.kv_heads == 0;
}

[[maybe_unused]] bool is_routing(const Routing& r, int rows, int experts) {
    const int k = r.ids.cols;
    return k >= 1 && k <= kMaxChosen && k <= experts && experts <= kMaxExperts &&
           is(r.ids, DType::I32, rows, k) && is(r.weights, DType::F32, rows, k) &&
           is_index(r.order, rows * k) && r.tiles.row_stride == kExpertTileInts &&
           is(r.tiles, DType::I32, most_expert_tiles(rows, k, experts), kExpertTileInts);
}

[[maybe_unused]] bool is_choice(const Choice& c) {
    const auto is_of_tokens = [&](const Tensor& t, int tokens_of_word) {
        return t.dtype == DType::I32 &&
               (c.id_map || t.cols == (c.logits.cols + tokens_of_word - 1) / tokens_of_word);
    };
    const Tensor& rules = c.rules.block;
    return is_f32(c.logits) &&
           (!rules || (is(rules, DType::I32, rules.rows, kRowChoiceInts) &&
                       rules.row_stride == kRowChoiceInts &&
                       (rules.rows == 1 || rules.rows == c.logits.rows))) &&
           (!c.rules.seen || (rules && is_of_tokens(c.rules.seen, 1))) &&
           (!c.mask || (c.mask.rows == c.logits.rows && is_of_tokens(c.mask, 32))) &&
           (!c.id_map || is_index(c.id_map, c.logits.cols));
}

void check_consumers([[maybe_unused]] const Backend& be, [[maybe_unused]] const Tensor& out,
                     const Consumers& consumers) {
    for ([[maybe_unused]] const Weight* consumer : consumers)
        assert(out.dtype == be.activation_type(*consumer) && consumer->cols == out.cols);
}

}  // namespace

void Backend::reserve(const Limits& limits) {
    const Capabilities& device = capabilities();
    check_limits(limits, device.most, device.name, "this device");
    const Limits all = largest(reserved_, limits);
    if (all == reserved_) return;
    do_reserve(all);
    reserved_ = all;
}

DType Backend::activation_type(const Weight& w) const {
    for (const WeightSegment& segment : w.segments)
        if (!is_quantised(segment.dtype)) return DType::F32;
    return DType::I8G32;
}

float AttentionShape::usual_scale() const {
    return float(1.0 / std::sqrt(double(head_dim)));
}

void MatmulGated::run_parts(Backend& be, Label label) const {
    be.run(Matmul{gate_up, x, weight, Accumulate::no, bias}, {"gate_up", label.layer});
    be.run(Gated{out, gate_up, activation}, label);
}

void EmbedPair::run_parts(Backend& be, Label label) const {
    const Tensor pair = out.dtype == DType::F32 ? out : scratch;
    const Tensor beside = pair.col_range(table.cols, table.cols);
    be.run(Embed{pair.col_range(0, table.cols), table, rows}, {"embedding", label.layer});
    if (index)
        be.run(GatherRows{beside, features, index}, {"feature", label.layer});
    else
        be.run(Copy{beside, features}, {"feature", label.layer});
    if (out.dtype != DType::F32) be.run(Copy{out, pair}, label);
}

void MatmulRope::run_parts(Backend& be, Label label) const {
    be.run(Matmul{qkv, x, weight, Accumulate::no, bias}, {"qkv", label.layer});
    be.run(RopeAppend{qkv, rope, rows, shape, kv}, label);
}

Tensor activation_in(const Backend& be, Tensor scratch, const Weight& w, int rows) {
    assert(scratch.dtype == DType::F32 && scratch.rows >= rows && scratch.cols >= w.cols);
    return dense_prefix(scratch, be.activation_type(w), rows, w.cols);
}

Tensor activation(Backend& be, Tensor x, const Weight& w, Tensor scratch, Label label) {
    if (be.activation_type(w) == x.dtype) return x;
    const Tensor copied = activation_in(be, scratch, w, x.rows);
    be.run(Copy{copied, x}, label);
    return copied;
}

void Embed::check(const Backend&) const {
    assert(is_f32(out) && out.cols == table.cols && is_rows(rows, out.rows));
}

void RmsNorm::check(const Backend& be) const {
    assert(is_f32(x) && is_activation(out, x.rows, x.cols) && is(weight, DType::F32, 1, x.cols));
    check_consumers(be, out, consumers);
}

void Matmul::check([[maybe_unused]] const Backend& be) const {
    assert(is_activation(x, x.rows, weight.cols) && is(out, DType::F32, x.rows, weight.rows));
    assert(x.dtype == be.activation_type(weight) && weight.matrix_rows == 0);
    assert(!bias || is(bias, DType::F32, 1, weight.rows));
}

void HeadNorm::check(const Backend&) const {
    assert(is_shape(shape) && is_f32(qkv));
    assert(qkv.cols == (shape.heads + 2 * shape.kv_heads) * shape.head_dim);
    assert(is(q_weight, DType::F32, 1, shape.head_dim));
    assert(is(k_weight, DType::F32, 1, shape.head_dim));
}

void RopeAppend::check(const Backend&) const {
    assert(is_shape(shape) && is_kv(kv, shape) && is_rows(rows, qkv.rows));
    assert(is_f32(qkv) && qkv.cols == (shape.heads + 2 * shape.kv_heads) * shape.head_dim);
    assert(is_f32(rope) && rope.cols == shape.head_dim);
}

void MatmulRope::check([[maybe_unused]] const Backend& be) const {
    Matmul{qkv, x, weight, Accumulate::no, bias}.check(be);
    RopeAppend{qkv, rope, rows, shape, kv}.check(be);
}

void Attention::check(const Backend& be) const {
    assert(is_shape(shape) && is_kv(kv, shape) && is_rows(rows, qkv.rows));
    assert(is_f32(qkv) && qkv.cols == (shape.heads + 2 * shape.kv_heads) * shape.head_dim);
    assert(is_activation(out, qkv.rows, shape.heads * shape.head_dim));
    assert(scale > 0 && window >= 0);
    check_consumers(be, out, consumers);
}

void Gated::check(const Backend&) const {
    assert(is_f32(gate_up) && is_activation(out, gate_up.rows, gate_up.cols / 2));
}

void MatmulGated::check(const Backend& be) const {
    check_consumers(be, out, consumers);
    assert(is_activation(x, x.rows, weight.cols) && x.dtype == be.activation_type(weight));
    assert(is(gate_up, DType::F32, x.rows, weight.rows));
    assert(is_activation(out, x.rows, weight.rows / 2));
    assert(!bias || is(bias, DType::F32, 1, weight.rows));
}

void Add::check(const Backend&) const {
    assert(is_f32(a) && is(b, DType::F32, a.rows, a.cols) && is(out, DType::F32, a.rows, a.cols));
}

void Copy::check(const Backend&) const {
    assert(is_f32(x) && is_activation(out, x.rows, x.cols));
}

void EmbedPair::check(const Backend&) const {
    assert(is_activation(out, out.rows, 2 * table.cols) && is_rows(rows, out.rows));
    assert(out.dtype == DType::F32 || is(scratch, DType::F32, out.rows, out.cols));
    assert(is_f32(features) && features.cols == table.cols);
    assert(index ? is_index(index, out.rows) : features.rows == out.rows);
}

void GatherRows::check(const Backend&) const {
    assert(is_index(index, out.rows) && is_f32(x) && is(out, DType::F32, out.rows, x.cols));
}

void KvCompact::check(const Backend&) const {
    assert(is(moves, DType::I32, moves.rows, kKvMoveInts) && moves.row_stride == kKvMoveInts);
    for ([[maybe_unused]] const KvLayer& layer : layers)
        assert(is_like(layer.k, layers[0].k) && is_like(layer.v, layers[0].v) &&
               is_like(layer.page_table, layers[0].page_table));
}

void Noise::check(const Backend&) const {
    assert(is_f32(out) && is_index(positions, out.rows));
}

void TopK::check(const Backend&) const {
    assert(is_choice(choice));
    [[maybe_unused]] const int rows = choice.logits.rows, vocab = choice.logits.cols;
    [[maybe_unused]] const int k = ids.cols;
    assert(k >= 1 && k <= kMaxTopK && k <= vocab);
    assert(is(ids, DType::I32, rows, k) && is(log_probs, DType::F32, rows, k));
    assert(!noise || (is_f32(noise) && noise.rows == 1 && choice.rules.block));
    assert(!noise || choice.id_map || noise.cols == vocab);
}

void Beam::check(const Backend&) const {
    [[maybe_unused]] const int count = ids.rows, k = ids.cols, width = next.count();
    assert(is(log_probs, DType::F32, count, k) && is_rows(rows, count));
    assert(!from_root || count == 1);
    assert(table.cols == kCandidateInts && table_offset + count * k <= table.rows);
    assert(width <= count * k && width <= kMaxFrontier);
    assert(width == 0 || (is_rows(next, width) && is_index(parent_row, width)));
    assert(width == 0 || !share_bytes(next.block, rows.block));
    assert(width == 0 || !selection || is_index(selection, width));
    assert(frontier.cols >= width && (from_root || frontier.cols >= count));
}

void Sample::check(const Backend&) const {
    assert(is_choice(choice) && is_index(ids, choice.logits.rows));
    assert(is_rows(rows, ids.cols) && !choice.id_map);
    assert(!noise || (is_f32(noise) && noise.cols == choice.logits.cols && choice.rules.block));
}

void Route::check(const Backend&) const {
    assert(is_f32(logits) && is_routing(routing, logits.rows, logits.cols));
}

void ExpertMatmul::check([[maybe_unused]] const Backend& be) const {
    assert(weight.matrix_rows > 0 && out.cols % weight.matrix_rows == 0);
    assert(weight.rows % out.cols == 0);
    assert(is_routing(routing, routing.rows(), weight.rows / out.cols));
    assert(is(out, DType::F32, routing.places(), out.cols));
    assert(is_activation(x, x.rows, weight.cols) && x.dtype == be.activation_type(weight));
    assert(x.rows == routing.rows() || x.rows == routing.places());
}

void ExpertSum::check(const Backend&) const {
    assert(is_f32(out) && is(x, DType::F32, out.rows * weights.cols, out.cols));
    assert(is(weights, DType::F32, out.rows, weights.cols) && weights.cols >= 1);
}

}  // namespace aerie
