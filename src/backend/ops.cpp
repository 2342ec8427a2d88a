// Shape checks of every op, in one place; a backend may rely on them.
#include "backend/ops.h"

#include <cassert>

namespace aerie {

namespace {

[[maybe_unused]] bool is(const Tensor& t, DType type, int rows, int cols) {
    return t && t.dtype == type && t.rows == rows && t.cols == cols && t.row_stride >= cols;
}

[[maybe_unused]] bool is_f32(const Tensor& t) {
    return t && t.dtype == DType::F32 && t.row_stride >= t.cols;
}

// Rows that a matmul may read: floats, or quantised for a quantised weight.
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

[[maybe_unused]] bool is_kv(const KvLayer& kv, const AttentionShape& shape) {
    return kv.k.cols == shape.kv_heads * shape.head_dim && kv.k.cols == kv.v.cols &&
           kv.k.rows == kv.v.rows && kv.k.dtype == kv.v.dtype &&
           (kv.k.dtype == DType::F32 || kv.k.dtype == DType::F16) && kv.k.rows % kPageSize == 0 &&
           kv.page_table.dtype == DType::I32;
}

[[maybe_unused]] bool is_shape(const AttentionShape& s) {
    return s.head_dim > 0 && s.head_dim % 16 == 0 && s.kv_heads > 0 && s.heads % s.kv_heads == 0;
}

[[maybe_unused]] bool is_choice(const Choice& c) {
    return is_f32(c.logits) && (!c.edits || c.edits.cols == kEditInts) &&
           (!c.mask || is(c.mask, DType::I32, c.logits.rows, (c.logits.cols + 31) / 32));
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

void Backend::do_matmul_swiglu(Tensor out, Tensor gate_up, Tensor x, const Weight& w) {
    do_matmul(gate_up, x, w, {}, Accumulate::no);
    do_swiglu(out, gate_up);
}

void embed(Backend& be, Tensor out, const Weight& table, Rows rows) {
    assert(is_f32(out) && out.cols == table.cols && is_rows(rows, out.rows));
    be.do_embed(out, table, rows);
}

void rms_norm(Backend& be, Tensor out, Tensor x, Tensor weight, float epsilon) {
    assert(is_f32(x) && is_activation(out, x.rows, x.cols) && is(weight, DType::F32, 1, x.cols));
    be.do_rms_norm(out, x, weight, epsilon);
}

void rms_norm(Backend& be, Tensor out, Tensor x, Tensor weight, float epsilon, const Weight& next) {
    assert(is_f32(x) && is_activation(out, x.rows, x.cols) && is(weight, DType::F32, 1, x.cols));
    assert(out.dtype == be.activation_type(next) && next.cols == x.cols);
    be.do_rms_norm_for(out, x, weight, epsilon, next);
}

void matmul(Backend& be, Tensor out, Tensor x, const Weight& w, Accumulate acc, Tensor bias) {
    assert(is_activation(x, x.rows, w.cols) && is(out, DType::F32, x.rows, w.rows));
    assert(x.dtype == be.activation_type(w));
    assert(!bias || is(bias, DType::F32, 1, w.rows));
    be.do_matmul(out, x, w, bias, acc);
}

void rope_append(Backend& be, Tensor qkv, Tensor rope, Rows rows, const AttentionShape& shape,
                 const KvLayer& kv) {
    assert(is_shape(shape) && is_kv(kv, shape) && is_rows(rows, qkv.rows));
    assert(is_f32(qkv) && qkv.cols == (shape.heads + 2 * shape.kv_heads) * shape.head_dim);
    assert(is_f32(rope) && rope.cols == shape.head_dim);
    be.do_rope_append(qkv, rope, rows, shape, kv);
}

void attention(Backend& be, Tensor out, Tensor qkv, Rows rows, const AttentionShape& shape,
               const KvLayer& kv) {
    assert(is_shape(shape) && is_kv(kv, shape) && is_rows(rows, qkv.rows));
    assert(is_f32(qkv) && qkv.cols == (shape.heads + 2 * shape.kv_heads) * shape.head_dim);
    assert(is_activation(out, qkv.rows, shape.heads * shape.head_dim));
    be.do_attention(out, qkv, rows, shape, kv);
}

void swiglu(Backend& be, Tensor out, Tensor gate_up) {
    assert(is_f32(gate_up) && is_activation(out, gate_up.rows, gate_up.cols / 2));
    be.do_swiglu(out, gate_up);
}

void matmul_swiglu(Backend& be, Tensor out, Tensor gate_up, Tensor x, const Weight& w) {
    assert(is_activation(x, x.rows, w.cols) && x.dtype == be.activation_type(w));
    assert(is(gate_up, DType::F32, x.rows, w.rows) && is_activation(out, x.rows, w.rows / 2));
    be.do_matmul_swiglu(out, gate_up, x, w);
}

void add(Backend& be, Tensor out, Tensor a, Tensor b) {
    assert(is_f32(a) && is(b, DType::F32, a.rows, a.cols) && is(out, DType::F32, a.rows, a.cols));
    be.do_add(out, a, b);
}

void copy(Backend& be, Tensor out, Tensor x) {
    assert(is_f32(x) && is_activation(out, x.rows, x.cols));
    be.do_copy(out, x);
}

Tensor activation_in(const Backend& be, Tensor room, const Weight& w, int rows) {
    assert(room.dtype == DType::F32 && room.rows >= rows && room.cols >= w.cols);
    return dense_prefix(room, be.activation_type(w), rows, w.cols);
}

Tensor activation(Backend& be, Tensor x, const Weight& w, Tensor room) {
    if (be.activation_type(w) == x.dtype) return x;
    const Tensor copied = activation_in(be, room, w, x.rows);
    copy(be, copied, x);
    return copied;
}

void gather_rows(Backend& be, Tensor out, Tensor x, Tensor index) {
    assert(is_index(index, out.rows) && is_f32(x) && is(out, DType::F32, out.rows, x.cols));
    be.do_gather_rows(out, x, index);
}

void kv_compact(Backend& be, const KvLayer& kv, int sequence, Tensor from_slots, int to_slot) {
    assert(is_index(from_slots, from_slots.cols) && sequence < kv.page_table.rows);
    be.do_kv_compact(kv, sequence, from_slots, to_slot);
}

void noise(Backend& be, Tensor out, uint64_t seed, Tensor positions) {
    assert(is_f32(out) && is_index(positions, out.rows));
    be.do_noise(out, seed, positions);
}

void top_k(Backend& be, const TopKStep& step) {
    assert(is_choice(step.choice));
    const int rows = step.choice.logits.rows, vocab = step.choice.logits.cols;
    const int k = step.ids.cols;
    assert(k >= 1 && k <= kMaxTopK && k <= vocab);
    assert(is(step.ids, DType::I32, rows, k) && is(step.log_probs, DType::F32, rows, k));
    assert(!step.noise || is(step.noise, DType::F32, 1, vocab));
    assert(!step.id_map || is_index(step.id_map, vocab));
    (void)rows, (void)vocab, (void)k;
    be.do_top_k(step);
}

void beam(Backend& be, const BeamStep& step) {
    [[maybe_unused]] const int rows = step.ids.rows, k = step.ids.cols;
    assert(is(step.log_probs, DType::F32, rows, k) && is_rows(step.rows, rows));
    assert(!step.from_root || rows == 1);
    assert(step.table.cols == kCandidateInts && step.table_offset + rows * k <= step.table.rows);
    [[maybe_unused]] const int width = step.next.count();
    assert(width <= rows * k && width <= kMaxFrontier);
    assert(width == 0 || (is_rows(step.next, width) && is_index(step.parent_row, width)));
    assert(width == 0 || !share_bytes(step.next.block, step.rows.block));
    assert(width == 0 || !step.selection || is_index(step.selection, width));
    assert(step.frontier.cols >= width && (step.from_root || step.frontier.cols >= rows));
    be.do_beam(step);
}

void sample(Backend& be, Tensor ids, const SampleStep& step) {
    assert(is_choice(step.choice) && is_index(ids, step.choice.logits.rows));
    assert(is_rows(step.rows, ids.cols));
    assert(step.choice.filters.temperature == 0 ||
           (is_f32(step.noise) && step.noise.cols == step.choice.logits.cols));
    be.do_sample(ids, step);
}

void probs(Backend& be, Tensor out, const Choice& choice) {
    assert(is_choice(choice) && is(out, DType::F32, choice.logits.rows, choice.logits.cols));
    be.do_probs(out, choice);
}

}  // namespace aerie
