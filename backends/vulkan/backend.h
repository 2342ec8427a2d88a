// The Vulkan backend. An op records one or a few dispatches; they are submitted by the next read or
// sync, or once enough work has come together (queue.h).
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>

#include "backend/backend.h"
#include "backend/tensor_plan.h"
#include "vulkan/matmul_kernels.h"
#include "vulkan/queue.h"

namespace aerie::vulkan {

constexpr int kMaxGroups = 65535;  // workgroups that every device allows along x, y and z
constexpr int kWidest = 1 << 20;   // so that an int can count the words of attention's scratch
constexpr int kMaxContext = 1024 * kPageSize;  // 1,024 chunks, for the same reason
constexpr int kMaxVocab = 1 << 20;             // terms that a sum of fixed_point.glsl can have

struct WeightPart;

// Scratch tensors, through which the dispatches of ops hand results on.
struct Scratch {
    void add_attention_to(TensorPlan& plan, const Limits& limits, size_t most_bytes);
    void add_others_to(TensorPlan& plan, const Limits& limits, bool with_halves);
    void add_halves_to(TensorPlan& plan, int rows, int cols);
    void add_choices_to(TensorPlan& plan, const Limits& limits);

    // F32 [rows, heads * chunks * (2 + head_dim)]: partial results of attention
    // (shaders/lib/partial.glsl), for some rows at a time.
    Tensor attention;
    int chunks = 0;  // chunks of the longest context
    // I8G32 [rows or places, widest]: quantised x, for weights that also have float rows.
    Tensor quantised;
    Tensor halves;  // I32: x as pairs of f16 (shaders/lib/halves.glsl)
    // For choices, which take some rows at a time. The histogram is all zero between ops.
    Tensor edited;      // F32 [rows, vocab]: logits after penalties and mask
    Tensor tops;        // I32 [rows, 2]: key and id of the best logit
    Tensor cuts;        // I32 [rows, kCutWords]
    Tensor histogram;   // I32 [rows, 3 * kDigits]
    Tensor best_parts;  // I32 [rows, slices * ...]: results of slices
};

class VulkanBackend final : public DeviceBackend<VulkanBackend> {
  public:
    VulkanBackend(std::shared_ptr<Device> device, size_t index);

    const Capabilities& capabilities() const override { return capabilities_; }
    Buffer allocate(size_t size_bytes) override;
    bool stores(DType type) const override;
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override;
    size_t scratch_bytes(const Limits& limits) const override;
    void write(Tensor to, const void* from) override;
    void read(Tensor from, void* to) override;
    void sync() override;
    void replay(uint64_t key, const std::function<void()>& record) override;
    std::unique_ptr<MemoryProbe> memory_probe(size_t size_bytes) override;
    std::vector<OpTime> op_times() override;
    CommandCounts command_counts() const override { return queue_->counts(); }

    template <class Op>
    static constexpr bool fuses = std::is_same_v<Op, MatmulGated> || std::is_same_v<Op, MatmulRope>;

    template <class Op>
    void execute(const Op& op);  // specialised in ops/

    const Queue& queue() const { return *queue_; }
    // The dispatch of memory_probe(): copies `from` to `to`, or with `read_only` reads all of
    // `from` and writes one word per workgroup.
    void probe(Tensor to, Tensor from, bool read_only, uint32_t workgroups, double work_of_word);

  private:
    void do_reserve(const Limits& limits) override;
    std::array<TensorPlan, 2> plan_scratch(Scratch& scratch, const Limits& limits) const;
    // The forms of x that have been made for a matmul so far.
    struct OtherForms {
        Tensor quantised = {};
        bool halves = false;
        std::optional<RmsNorm> norm = {};  // postponed: the matmul does it as it reads x
    };
    OtherForms forms_for(const Weight& consumer);
    struct Input {
        Tensor tensor;
        uint32_t stride;  // words between rows; for pairs of f16 the padded number of rows
        const RmsNorm* norm = nullptr;
    };
    // The output of a matmul and its epilogue.
    struct Product {
        Tensor out;
        Accumulate accumulate = Accumulate::no;
        Tensor bias = {};
        Epilogue epilogue = Epilogue::none;
        bool packed = false;
        int apart = 0;  // rows between the two halves that the epilogue combines
        const MatmulRope* rope = nullptr;
    };
    Input input_of(const Tensor& x, DType weight, RowsOfX which, OtherForms& made);
    void put_halves(const Tensor& x);
    void multiply(const Product& product, const Tensor& x, const Input& input,
                  const WeightPart& part);
    bool finish(const Product& product, const Tensor& x, const Weight& weight);
    bool postpones(const RmsNorm& op) const;
    void multiply_experts(const ExpertMatmul& op, const Input& input, const WeightPart& part,
                          int stack);
    // Binding i of the shader is bindings[i]; `params` follow the offsets of the bindings in the
    // push constants. A grid may be cut along x or y. `work` is the estimated number of
    // multiply-adds, `most_work` an upper bound where data on the device decide.
    template <class Params>
    void dispatch(const Kernel& kernel, const Params& params, std::span<const Access> bindings,
                  Grid grid, double work, double most_work = 0) {
        queue_->dispatch(
            {kernel, bindings, &params, sizeof(Params), grid, work, std::max(work, most_work)});
    }
    template <class Params>
    void dispatch(const Kernel& kernel, const Params& params,
                  std::initializer_list<Access> bindings, Grid grid, double work,
                  double most_work = 0) {
        dispatch(kernel, params, std::span(bindings.begin(), bindings.size()), grid, work,
                 most_work);
    }
    Buffer allocate_raw(size_t size_bytes);  // not zeroed
    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
    Capabilities capabilities_;
    std::vector<Buffer> scratch_memory_;
    Scratch scratch_;
    // Forgets what a norm left for matmuls that have not come. This is done at both ends of a pass:
    // no matmul may take a norm that was meant for another one.
    void forget_norms();
    Consumers halves_for_;  // weights with matmuls that find x in scratch_.halves
    std::optional<RmsNorm> postponed_;
};

}  // namespace aerie::vulkan
