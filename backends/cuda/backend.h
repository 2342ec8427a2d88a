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

enum class Packing;
struct CudaSegment;
struct ExpertStack;
struct LeftSums;
struct MatmulOutput;
struct NormedRows;
struct QuantTask;
struct RowTask;
template <class T>
struct View;

// How rows were left for the matmuls that read them, where these were named.
struct LeftRows {
    Packing packed = {};         // what lies in scratch
    Tensor x = {}, weight = {};  // or, of one row: it is still to be normalised
    float epsilon = 0;
    const float* peaks = nullptr;  // or: so many largest magnitudes of it
    int peak_count = 0;
};

// A product that is still to become `out`, or be added to it, for its sums lie as the shares left
// them (device/left_sums.cuh).
struct LeftProduct {
    Tensor out;  // or absent
    bool accumulate = false;
    const float* bias = nullptr;
    EvenSplit split;
};

// What a matmul reads: at most kPassRows rows, and what was made of them so far.
struct MatmulColumns {
    Tensor x;
    Tensor quantised;  // or absent
    LeftRows left;
};

class CudaBackend final : public DeviceBackend<CudaBackend> {
  public:
    // Throws Error.
    CudaBackend(int index, bool profile,
                const std::function<void(const std::string&)>& on_progress);

    const Capabilities& capabilities() const override { return capabilities_; }
    Buffer allocate(size_t size_bytes) override;
    bool stores(DType type) const override;
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override;
    size_t scratch_bytes(const Limits& limits) const override;
    void write(Tensor to, const void* from) override { queue_->write(to, from); }
    void read(Tensor from, void* to) override { queue_->read(from, to); }
    void sync() override { queue_->wait(); }
    void replay(uint64_t key, const std::function<void()>& record) override;
    std::vector<OpTime> op_times() override { return queue_->op_times(); }
    CommandCounts command_counts() const override { return queue_->counts(); }
    std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) override;

    template <class Op>
    static constexpr bool fuses = std::is_same_v<Op, MatmulSwiglu> ||
                                  std::is_same_v<Op, MatmulRope> || std::is_same_v<Op, EmbedPair>;
    template <class Op>
    void execute(const Op& op) {
        if (!takes_left_sums(op)) add_left_sums();  // what a matmul left is for the op behind it
        enqueue(op);
    }

  private:
    template <class Op>
    void enqueue(const Op& op);  // in the file of the op's name; of matmuls: multiply.cu
    void do_reserve(const Limits& limits) override;
    // How all readers' matmuls want these rows; none where they differ, or take them as they are.
    Packing packing_for(const Readers& readers, int rows) const;
    // Packs the rows so, or leaves one to the matmuls.
    bool leave_to_readers(const RmsNorm& norm);
    void pack_normed(Packing packing, const RmsNorm& norm);
    // Where the kernel that makes a row leaves so many largest magnitudes of it; null: nobody asks.
    float* leave_peaks(int count, const Readers& readers);
    void multiply_rows(const Matmul& op, bool leaves_sums);
    bool may_leave_sums(const Matmul& op) const;
    template <class Op>
    bool takes_left_sums(const Op&) const {
        return false;
    }
    bool takes_left_sums(const RmsNorm& norm) const;
    bool takes_left_sums(const RopeAppend& op) const;
    LeftSums take_left_sums();
    void add_left_sums();
    // What was left for this matmul; if nothing, what lies in scratch is of no use.
    LeftRows left_for(const Weight& w);
    // Rows [first, first + kPassRows) of x, as far as there are so many, for a matmul with `w`.
    MatmulColumns columns_of(const Tensor& x, int first, const Weight& w);
    void multiply(const MatmulOutput& output, MatmulColumns& columns, const CudaSegment& w,
                  const Readers& readers = {});
    QuantTask quant_task(MatmulColumns& columns, const CudaSegment& w);
    RowTask row_task(const MatmulColumns& columns) const;
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
    LeftRows left_;
    Readers left_for_;             // those that are still to come
    bool other_peaks_ = false;     // where they lie: in two places by turns
    Tensor quantised_;             // I8G32: a copy of x, where a weight has rows of floats too
    // Packed columns of expert_matmul, and their inverse scales: all rows of x, once.
    float* place_scales_ = nullptr;
    std::byte* place_columns_ = nullptr;
    SplitPlan split_;              // sums of matmuls
    LeftProduct left_product_;
    bool is_in_pass_ = false;  // that is replayed: what is left in it is added up before its end
    unsigned* tickets_ = nullptr;  // kMostTickets of them, 0 between launches
    float* partials_ = nullptr;    // chunks of attention
    size_t partial_floats_ = 0;
    std::byte* rankings_ = nullptr;  // rows and slices of top_k
    float* logits_ = nullptr;        // edited, [kPassRows, vocab]
};

}  // namespace aerie::cuda
