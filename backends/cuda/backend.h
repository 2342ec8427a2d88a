// The CUDA backend: ops are enqueued on one stream.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

#include "backend/backend.h"
#include "cuda/memory.h"
#include "cuda/queue.h"
#include "cuda/split.h"

namespace aerie::cuda {

constexpr int kMostHeadDim = 256;  // that attention's kernels are made for
constexpr int kMostGrid = 65535;   // blocks along y and z
constexpr int kPassRows = 64;  // most rows that scratch is kept for; more come in several launches

enum class Packing;
struct CudaSegment;
struct ExpertStack;
struct MatmulOutput;
struct NormedRows;
struct PackTail;
struct QuantTask;
template <class T>
struct View;

// What a matmul reads: at most kPassRows rows, and what was made of them so far.
struct MatmulColumns {
    Tensor x;
    Tensor quantised;  // or absent
    Packing packed;    // what lies in scratch
};

class CudaBackend final : public DeviceBackend<CudaBackend> {
  public:
    CudaBackend(int index, bool profile);  // throws Error

    const Capabilities& capabilities() const override { return capabilities_; }
    Buffer allocate(size_t size_bytes) override;
    bool stores(DType type) const override;
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override;
    size_t scratch_bytes(const Limits& limits) const override;
    void write(Tensor to, const void* from) override { queue_->write(to, from); }
    void read(Tensor from, void* to) override { queue_->read(from, to); }
    void sync() override { queue_->wait(); }
    void replay(uint64_t key, const std::function<void()>& record) override {
        queue_->replay(key, record);
    }
    std::vector<OpTime> op_times() override { return queue_->op_times(); }
    CommandCounts command_counts() const override { return queue_->counts(); }
    std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) override;

    template <class Op>
    static constexpr bool fuses =
        std::is_same_v<Op, MatmulSwiglu> || std::is_same_v<Op, MatmulRope>;
    template <class Op>
    void execute(const Op& op);  // in the file of the op's name; of matmuls: multiply.cu

  private:
    void do_reserve(const Limits& limits) override;
    // How all readers' matmuls want these rows; none where they differ, or take them as they are.
    Packing packing_for(const Readers& readers, int rows) const;
    // Packs the rows so.
    bool pack_for_readers(const RmsNorm& norm);
    // What packs them behind the kernel that makes them, if it is one row.
    PackTail pack_tail(const View<const float>& out, const Readers& readers);
    // Whether that was done for this matmul; if not, nothing that lies in scratch is of use.
    bool packed_already(const Weight& w);
    // Rows [first, first + kPassRows) of x, as far as there are so many, for a matmul with `w`.
    MatmulColumns columns_of(const Tensor& x, int first, const Weight& w);
    void multiply(const MatmulOutput& output, MatmulColumns& columns, const CudaSegment& w,
                  const Readers& readers = {});
    QuantTask quant_task(MatmulColumns& columns, const CudaSegment& w);
    void multiply_quantised(const MatmulOutput& output, MatmulColumns& columns,
                            const CudaSegment& w);
    void multiply_gated(const Tensor& out, MatmulColumns& columns, const CudaSegment& w);
    void multiply_experts(const ExpertStack& stack, MatmulColumns& columns,
                          const CudaSegment& part);

    Capabilities capabilities_;
    std::shared_ptr<Queue> queue_;  // memory knows it, and may outlive this
    Limits limits_;
    Buffer scratch_;
    // Into scratch; each is used within one op.
    std::byte* packed_ = nullptr;  // columns of a matmul
    Readers packed_for_;           // whose matmuls find them there, those that are still to come
    Tensor quantised_;             // I8G32: a copy of x, where a weight has rows of floats too
    // Packed columns of expert_matmul, and their inverse scales: all rows of x, once.
    float* place_scales_ = nullptr;
    std::byte* place_columns_ = nullptr;
    SplitPlan split_;              // sums of matmuls
    unsigned* tickets_ = nullptr;  // kMostTickets of them, 0 between launches
    float* partials_ = nullptr;    // chunks of attention
    size_t partial_floats_ = 0;
    std::byte* rankings_ = nullptr;  // rows and slices of top_k
    float* logits_ = nullptr;        // edited, [kPassRows, vocab]
};

}  // namespace aerie::cuda
