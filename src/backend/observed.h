// A device whose ops are watched: every call goes to another backend, and after each op somebody
// may read what it put out, or put something else in its place.
#pragma once

#include <string_view>

#include "backend/backend.h"

namespace aerie {

// An op that a backend fuses must be forwarded here while nobody looks; otherwise its default body
// calls the ops that it is made of, and each of them is seen.
class ObservedBackend : public Backend {
  public:
    // Called after an op that computes with floats (embed, rms_norm, matmul, rope_append,
    // attention, swiglu, add, copy, gather_rows) with its name in ops.h and what it wrote:
    // rope_append's qkv, for instance. It may use the backend, but not its ops.
    using Observer = std::function<void(std::string_view op, Tensor out)>;

    explicit ObservedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

    // Empty: nobody looks. While somebody does, passes are not replayed but run op by op.
    void observe(Observer observer) { observer_ = std::move(observer); }

    const Capabilities& capabilities() const override { return inner_->capabilities(); }
    Buffer allocate(size_t size_bytes) override { return inner_->allocate(size_bytes); }
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override {
        return inner_->upload_weight(blocks, use);
    }
    size_t scratch_bytes(const Limits& limits) const override {
        return inner_->scratch_bytes(limits);
    }
    void write(Tensor to, const void* from) override { inner_->write(to, from); }
    void read(Tensor from, void* to) override { inner_->read(from, to); }
    void sync() override { inner_->sync(); }
    void replay(uint64_t key, const std::function<void()>& record) override;
    std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) override {
        return inner_->memory_probe(size_bytes);
    }
    std::vector<OpTime> op_times() override { return inner_->op_times(); }
    CommandCounts command_counts() const override { return inner_->command_counts(); }
    DType activation_type(const Weight& w) const override { return inner_->activation_type(w); }

    void do_embed(Tensor out, const Weight& table, Rows rows) override;
    void do_rms_norm(Tensor out, Tensor x, Tensor weight, float epsilon) override;
    void do_matmul(Tensor out, Tensor x, const Weight& w, Tensor bias, Accumulate acc) override;
    void do_rope_append(Tensor qkv, Tensor rope, Rows rows, const AttentionShape& shape,
                        const KvLayer& kv) override;
    void do_attention(Tensor out, Tensor qkv, Rows rows, const AttentionShape& shape,
                      const KvLayer& kv) override;
    void do_swiglu(Tensor out, Tensor gate_up) override;
    void do_rms_norm_for(Tensor out, Tensor x, Tensor weight, float epsilon,
                         const Weight& next) override;
    void do_matmul_swiglu(Tensor out, Tensor gate_up, Tensor x, const Weight& w) override;
    void do_add(Tensor out, Tensor a, Tensor b) override;
    void do_copy(Tensor out, Tensor x) override;
    void do_gather_rows(Tensor out, Tensor x, Tensor index) override;
    void do_kv_compact(const KvLayer& kv, int sequence, Tensor from_slots, int to_slot) override;
    void do_noise(Tensor out, uint64_t seed, Tensor positions) override;
    void do_top_k(const TopKStep& step) override;
    void do_beam(const BeamStep& step) override;
    void do_sample(Tensor ids, const SampleStep& step) override;
    void do_probs(Tensor out, const Choice& choice) override;

  private:
    void do_reserve(const Limits& limits) override { inner_->reserve(limits); }
    void show(std::string_view op, Tensor out) {
        if (observer_) observer_(op, out);
    }

    std::unique_ptr<Backend> inner_;
    Observer observer_;
};

}  // namespace aerie
