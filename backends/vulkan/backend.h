// The Vulkan backend: every op records a dispatch or two; nothing runs before a read.
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

constexpr int kMostGroups = 65535;  // that every device has along x, y and z
constexpr int kWidest = 1 << 20;    // so that an int counts the words of attention's scratch
constexpr int kMostContext = 1024 * kPageSize;  // as attention.comp has it
constexpr int kMostVocab = 1 << 20;             // as fixed_point.glsl and best_of.glsl have it

struct WeightPart;

// All that ops keep between dispatches.
struct Scratch {
    void add_attention_to(TensorPlan& plan, const Limits& limits, size_t most_bytes);
    void add_others_to(TensorPlan& plan, const Limits& limits, bool with_halves);
    void add_halves_to(TensorPlan& plan, int rows, int cols);
    void add_choices_to(TensorPlan& plan, const Limits& limits);

    Tensor attention;  // F32: for some rows at a time, partial results of all heads and chunks
    int chunks = 0;    // of the context
    Tensor quantised;  // I8G32 [rows or places, widest]: a copy of x, where a weight has floats too
    Tensor halves;     // I32: x as lib/halves.glsl has it
    // Choices, for some rows at a time. The histogram is zero between ops.
    Tensor edited;      // F32 [rows, vocab]: logits after edits and mask
    Tensor tops;        // I32 [rows, 2]: key and id of the best
    Tensor totals;      // I32 [rows, 2]: a sum in fixed point
    Tensor cuts;        // I32 [rows, kCutWords]
    Tensor histogram;   // I32 [rows, 3 * kDigits]
    Tensor best_parts;  // I32 [rows, slices * ...]: what slices have found
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
    static constexpr bool fuses =
        std::is_same_v<Op, MatmulSwiglu> || std::is_same_v<Op, MatmulRope>;

    template <class Op>
    void execute(const Op& op);  // in ops.cpp and ops

    const Queue& queue() const { return *queue_; }
    // Reads all of `from` into one word of a workgroup each, or copies it.
    void probe(Tensor to, Tensor from, bool read_only, uint32_t workgroups, double work_of_word);

  private:
    void do_reserve(const Limits& limits) override;
    std::array<TensorPlan, 2> plan_scratch(Scratch& scratch, const Limits& limits) const;
    // Of x, that were made for some matmul.
    struct OtherForms {
        Tensor quantised = {};
        bool halves = false;
        std::optional<RmsNorm> norm = {};  // that is to be done where x is read
    };
    OtherForms forms_for(const Weight& reader);
    struct Input {
        Tensor tensor;
        uint32_t stride;  // as its form has one
        const RmsNorm* norm = nullptr;
    };
    // A product, and what becomes of it.
    struct Product {
        Tensor out;
        Accumulate accumulate = Accumulate::no;
        Tensor bias = {};
        Finish finish = Finish::none;
        bool packed = false;
        int apart = 0;  // rows from one half of what is finished to the other
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
    // Binding i of the shader is bindings[i]; params come behind their offsets. A grid may be cut
    // along x or y.
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
    // What a norm has left to matmuls that are still to come. It is gone with its pass: no matmul
    // may take what belongs to another one.
    void forget_norms();
    Readers halves_for_;  // whose x is in scratch_.halves
    std::optional<RmsNorm> postponed_;
};

}  // namespace aerie::vulkan
