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

constexpr int kMaxHeadDim = 256;  // largest head that the attention kernels take
constexpr int kMaxGrid = 65535;   // blocks of a grid along y and along z

enum class Packing;
struct CudaSegment;
struct ExpertStack;
struct PartialSums;
struct MatmulOutput;
struct NormedRows;
struct QuantTask;
struct RowTask;
template <class T>
struct View;

// The form in which an op puts its output for the matmuls that read it (Consumers).
struct DeferredInput {
    Packing packed = {};         // how the rows lie in scratch, if they are packed
    Tensor x = {}, weight = {};  // or: the only row is still to be normalised
    float epsilon = 0;
    const float* amax = nullptr;  // or: amax values of the only row, by part of it
    int amax_count = 0;
};

// A matmul with partial sums that are still to be added up and stored in, or added to, `out`
// (device/partial_sums.cuh).
struct DeferredReduction {
    Tensor out;  // or absent
    bool accumulate = false;
    const float* bias = nullptr;
    FloatSplitK split;
};

// The activations of a matmul: at most kPassRows rows, and the forms in which they are there so
// far.
struct MatmulColumns {
    Tensor x;
    Tensor quantised;  // x as I8G32; or absent
    DeferredInput deferred;
};

// The number in the name of a GPU, which is 0 in cuda:0. Throws Error, also if there is no driver
// or no such GPU.
int find_device(const std::string& device);

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
    static constexpr bool fuses = std::is_same_v<Op, MatmulGated> ||
                                  std::is_same_v<Op, MatmulRope> || std::is_same_v<Op, EmbedPair>;
    template <class Op>
    void execute(const Op& op) {
        if (!takes_partial_sums(op)) finish_reduction();  // only the next op may take them
        enqueue(op);
    }

  private:
    template <class Op>
    void enqueue(const Op& op);  // in the file of the op, in elementwise.cu or in multiply.cu
    void do_reserve(const Limits& limits) override;
    // The packing that the matmuls of all consumers need for these rows; none if they differ, or
    // take rows as they are.
    Packing packing_for(const Consumers& consumers, int rows) const;
    // Defers a norm to its consumers: packs the normalised rows for them, or lets their matmuls
    // normalise a single row. False if neither is possible.
    bool defer_to_consumers(const RmsNorm& norm);
    void pack_normed(Packing packing, const RmsNorm& norm);
    // Makes the amax of a single row a deferred input of its consumers: where the kernel that makes
    // the row stores `count` amax values; null if they need none.
    float* defer_amax(int count, const Consumers& consumers);
    // `defers_reduction`: partial sums are not added up, but become deferred_reduction_.
    void multiply_rows(const Matmul& op, bool defers_reduction);
    bool may_defer_reduction(const Matmul& op) const;
    // Whether the op's kernel adds up deferred_reduction_ itself.
    template <class Op>
    bool takes_partial_sums(const Op&) const {
        return false;
    }
    bool takes_partial_sums(const RmsNorm& norm) const;
    bool takes_partial_sums(const RopeAppend& op) const;
    // deferred_reduction_ for a kernel that adds it up; afterwards there is none.
    PartialSums take_partial_sums();
    // Adds up deferred_reduction_ in a separate kernel, if there is one.
    void finish_reduction();
    // The form in which rows are in scratch for this matmul. If the op before did not put them
    // there, scratch holds nothing of use.
    DeferredInput deferred_input(const Weight& w);
    // Rows [first, first + kPassRows) of x, as far as there are so many, for a matmul with `w`.
    MatmulColumns columns_of(const Tensor& x, int first, const Weight& w);
    void multiply(const MatmulOutput& output, MatmulColumns& columns, const CudaSegment& w,
                  const Consumers& consumers = {});
    QuantTask quant_task(MatmulColumns& columns, const CudaSegment& w);
    RowTask row_task(const MatmulColumns& columns) const;
    void multiply_quantised(const MatmulOutput& output, MatmulColumns& columns,
                            const CudaSegment& w);
    void multiply_gated(const Tensor& out, MatmulColumns& columns, const CudaSegment& w);
    void multiply_experts(const ExpertStack& stack, MatmulColumns& columns,
                          const CudaSegment& part);

    Capabilities capabilities_;
    std::shared_ptr<Queue> queue_;  // shared with memory, which may outlive the backend
    Limits limits_;
    Buffer scratch_;
    // Pointers into scratch; each is used within one op.
    std::byte* packed_ = nullptr;  // columns of a matmul
    DeferredInput deferred_;
    Consumers pending_consumers_;  // the consumers of deferred_ that are still to run
    bool other_amax_ = false;      // the amax values alternate between two places
    Tensor quantised_;             // I8G32 copy of x, if a weight has float rows too
    // Packed columns of expert_matmul, and their inverse scales: all rows of x, once.
    float* place_scales_ = nullptr;
    std::byte* place_columns_ = nullptr;
    SplitPlan split_;  // workspace of matmuls
    DeferredReduction deferred_reduction_;
    bool is_in_pass_ = false;      // in a replay; no reduction is deferred beyond it
    unsigned* tickets_ = nullptr;  // kMaxTickets counters, 0 between launches
    float* partials_ = nullptr;    // chunks of attention
    size_t partial_floats_ = 0;
    std::byte* rankings_ = nullptr;  // rows and slices of top_k
    float* logits_ = nullptr;        // after penalties and mask, [kPassRows, vocab]
};

}  // namespace aerie::cuda
