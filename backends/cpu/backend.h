// The CPU backend: ops run at once, on the caller and a pool of threads.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "cpu/isa.h"
#include "cpu/memory.h"
#include "cpu/parallel.h"
#include "cpu/weight.h"

namespace aerie::cpu {

// What one thread may write to while it works on one op.
struct Scratch {
    float* logits;    // [vocab]
    float* masses;    // [vocab]
    int32_t* ids;     // [vocab]
    uint64_t* order;  // [vocab]
    float* row;       // [widest]: what is quantised on its way out
};

class CpuBackend final : public Backend {
  public:
    CpuBackend(Isa isa, int threads, const std::string& device = "cpu");

    const Capabilities& capabilities() const override { return capabilities_; }
    Buffer allocate(size_t size_bytes) override;
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override;
    size_t scratch_bytes(const Limits& limits) const override;
    void write(Tensor to, const void* from) override;
    void read(Tensor from, void* to) override;
    void sync() override {}
    void replay(uint64_t, const std::function<void()>& record) override { record(); }
    std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) override;

    void do_embed(Tensor out, const Weight& table, Rows rows) override;
    void do_rms_norm(Tensor out, Tensor x, Tensor weight, float epsilon) override;
    void do_matmul(Tensor out, Tensor x, const Weight& w, Tensor bias, Accumulate acc) override;
    void do_rope_append(Tensor qkv, Tensor rope, Rows rows, const AttentionShape& shape,
                        const KvLayer& kv) override;
    void do_attention(Tensor out, Tensor qkv, Rows rows, const AttentionShape& shape,
                      const KvLayer& kv) override;
    void do_swiglu(Tensor out, Tensor gate_up) override;
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
    void do_reserve(const Limits& limits) override;
    // make(float* to, int r) for each row of `out`, which then gets its type.
    template <class Make>
    void make_rows(Tensor out, double work, const Make& make);
    // At most kMostColumns rows of x.
    void multiply(Tensor x, const CpuWeight& weight, const MatmulOutput& output);
    template <class Body>
    void share_strips(const Tensor& x, const CpuSegment& segment, const MatmulOutput& output,
                      const Body& body);
    void multiply_floats(Tensor x, const CpuSegment& segment, const MatmulOutput& output);
    void multiply_quantised(Tensor x, const CpuSegment& segment, const MatmulOutput& output);

    const Kernels& kernels_;
    Pool pool_;
    Capabilities capabilities_;
    Buffer scratch_memory_;
    std::vector<Scratch> scratch_;  // one a thread
    std::byte* packed_ = nullptr;   // columns of one quantised matmul
    Tensor quantised_;              // I8G32: a copy of x, where a weight has rows of floats too
    WeightArena arena_;
};

}  // namespace aerie::cpu
