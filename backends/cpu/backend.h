// The CPU backend: ops run at once, on the caller and a pool of threads.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "cpu/isa.h"
#include "cpu/memory.h"
#include "cpu/parallel.h"
#include "cpu/weight.h"

namespace aerie::cpu {

// The scratch of one thread, while it works on one op.
struct Scratch {
    float* logits;    // [vocab]
    float* masses;    // [vocab]
    int32_t* ids;     // [vocab]
    uint64_t* order;  // [vocab]
    float* row;       // [widest]: an output row before it is quantised
};

struct ExpertGroup;

// The floats of scratch for the results of chunks of attention, which threads share if a pass has
// few rows.
size_t chunk_floats(const Limits& limits);

// Packed columns that scratch has room for: those of one matmul, or of several experts' matmuls.
int packed_columns(const Limits& limits);

class CpuBackend final : public DeviceBackend<CpuBackend> {
  public:
    CpuBackend(Isa isa, int threads, const std::string& device = "cpu");

    const Capabilities& capabilities() const override { return capabilities_; }
    Buffer allocate(size_t size_bytes) override;
    bool stores(DType type) const override {
        return is_float(type) || (is_quantised(type) && type != DType::I8G32);
    }
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override;
    size_t scratch_bytes(const Limits& limits) const override;
    void write(Tensor to, const void* from) override;
    void read(Tensor from, void* to) override;
    void sync() override {}
    void replay(uint64_t, const std::function<void()>& record) override { record(); }
    std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) override;

    template <class Op>
    void execute(const Op& op);  // specialised in ops.cpp and ops/

  private:
    void do_reserve(const Limits& limits) override;
    // Calls make(float* to, int r) for each row of `out`, and quantises the row if `out` is
    // quantised.
    template <class Make>
    void make_rows(Tensor out, double work, const Make& make) {
        pool_.run(out.rows, work, [&](int first, int last, int thread) {
            for (int r = first; r < last; ++r) {
                if (out.dtype == DType::F32) {
                    make(row_f32(out, r), r);
                } else {
                    make(scratch_[size_t(thread)].row, r);
                    kernels_.quantise(row<std::byte>(out, r), scratch_[size_t(thread)].row,
                                      out.cols);
                }
            }
        });
    }
    // The input of a matmul: at most kMaxColumns rows of x, and their quantised copy once it has
    // been made, for weights that have both float and quantised rows.
    struct Columns {
        Tensor x, quantised;
    };
    void multiply(Tensor x, const CpuWeight& weight, const MatmulOutput& output);
    void multiply(Columns& columns, const CpuMatrix& weight, const MatmulOutput& output);
    Tensor gather(const ExpertMatmul& op, const ExpertTile& places, int column);
    void multiply_expert(const ExpertMatmul& op, const ExpertTile& places);
    void multiply_experts(const ExpertMatmul& op, ExpertGroup& group);
    template <class Body>
    void share_strips(const Tensor& x, const CpuMatrix& weight, const MatmulOutput& output,
                      const Body& body);
    void multiply_floats(Tensor x, const CpuMatrix& weight, const MatmulOutput& output);
    void multiply_quantised(Tensor x, const CpuMatrix& weight, const MatmulOutput& output);

    const Kernels& kernels_;
    Pool pool_;
    Capabilities capabilities_;
    Buffer scratch_memory_;
    std::vector<Scratch> scratch_;  // one per thread
    std::byte* packed_ = nullptr;   // packed columns of one quantised matmul, or of several experts
    Tensor quantised_;              // I8G32: quantised x, for weights that also have float rows
    Tensor gathered_;               // rows of x that go to experts
    float* chunks_ = nullptr;       // ChunkResults of one op
    WeightArena arena_;
};

}  // namespace aerie::cpu
