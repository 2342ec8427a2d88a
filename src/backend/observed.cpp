// Ops go on to the inner backend; weights, buffers and tensors are its own.
#include "backend/observed.h"

namespace aerie {

void ObservedBackend::replay(uint64_t key, const std::function<void()>& record) {
    if (observer_)
        record();
    else
        inner_->replay(key, record);
}

void ObservedBackend::do_embed(Tensor out, const Weight& table, Rows rows) {
    inner_->do_embed(out, table, rows);
    show("embed", out);
}

void ObservedBackend::do_rms_norm(Tensor out, Tensor x, Tensor weight, float epsilon) {
    inner_->do_rms_norm(out, x, weight, epsilon);
    show("rms_norm", out);
}

void ObservedBackend::do_matmul(Tensor out, Tensor x, const Weight& w, Tensor bias,
                                Accumulate acc) {
    inner_->do_matmul(out, x, w, bias, acc);
    show("matmul", out);
}

void ObservedBackend::do_rope_append(Tensor qkv, Tensor rope, Rows rows,
                                     const AttentionShape& shape, const KvLayer& kv) {
    inner_->do_rope_append(qkv, rope, rows, shape, kv);
    show("rope_append", qkv);
}

void ObservedBackend::do_attention(Tensor out, Tensor qkv, Rows rows, const AttentionShape& shape,
                                   const KvLayer& kv) {
    inner_->do_attention(out, qkv, rows, shape, kv);
    show("attention", out);
}

void ObservedBackend::do_swiglu(Tensor out, Tensor gate_up) {
    inner_->do_swiglu(out, gate_up);
    show("swiglu", out);
}

void ObservedBackend::do_rms_norm_for(Tensor out, Tensor x, Tensor weight, float epsilon,
                                      const Weight& next) {
    if (observer_)
        do_rms_norm(out, x, weight, epsilon);
    else
        inner_->do_rms_norm_for(out, x, weight, epsilon, next);
}

void ObservedBackend::do_matmul_swiglu(Tensor out, Tensor gate_up, Tensor x, const Weight& w) {
    if (observer_)
        Backend::do_matmul_swiglu(out, gate_up, x, w);
    else
        inner_->do_matmul_swiglu(out, gate_up, x, w);
}

void ObservedBackend::do_add(Tensor out, Tensor a, Tensor b) {
    inner_->do_add(out, a, b);
    show("add", out);
}

void ObservedBackend::do_copy(Tensor out, Tensor x) {
    inner_->do_copy(out, x);
    show("copy", out);
}

void ObservedBackend::do_gather_rows(Tensor out, Tensor x, Tensor index) {
    inner_->do_gather_rows(out, x, index);
    show("gather_rows", out);
}

void ObservedBackend::do_kv_compact(const KvLayer& kv, int sequence, Tensor from_slots,
                                    int to_slot) {
    inner_->do_kv_compact(kv, sequence, from_slots, to_slot);
}

void ObservedBackend::do_noise(Tensor out, uint64_t seed, Tensor positions) {
    inner_->do_noise(out, seed, positions);
}

void ObservedBackend::do_top_k(const TopKStep& step) {
    inner_->do_top_k(step);
}

void ObservedBackend::do_beam(const BeamStep& step) {
    inner_->do_beam(step);
}

void ObservedBackend::do_sample(Tensor ids, const SampleStep& step) {
    inner_->do_sample(ids, step);
}

void ObservedBackend::do_probs(Tensor out, const Choice& choice) {
    inner_->do_probs(out, choice);
}

}  // namespace aerie
