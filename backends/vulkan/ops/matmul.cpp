// Ops Matmul, MatmulGated, MatmulRope and ExpertMatmul, part by part: a part of a weight has rows
// of one type in one binding. If kernels need x in another form, it is made once, before the first
// part that needs it.
#include <algorithm>
#include <array>
#include <utility>

#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"
#include "vulkan/matmul_kernels.h"
#include "vulkan/weight.h"

namespace aerie::vulkan {

void Scratch::add_halves_to(TensorPlan& plan, int rows, int cols) {
    const int panels = (cols + kHalfPanel - 1) / kHalfPanel;
    plan.add(halves, DType::I32, int(padded_rows(rows)), 1 + panels * kHalfPanel);
}

void VulkanBackend::put_halves(const Tensor& x) {
    const HalvesParams params = {uint32_t(x.cols), stride_words(x), padded_rows(x.rows)};
    dispatch({"halves"}, params, {writes(scratch_.halves), reads(x)}, {uint32_t(x.rows)},
             2.0 * x.rows * x.cols);
}

// The forms of x that a norm has already made for this weight, or the norm that it postponed.
VulkanBackend::OtherForms VulkanBackend::forms_for(const Weight& consumer) {
    OtherForms forms = {.halves = std::ranges::find(halves_for_, &consumer) != halves_for_.end()};
    if (postponed_ && postponed_->consumers.front() == &consumer)
        forms.norm = std::exchange(postponed_, std::nullopt);
    return forms;
}

// Returns x in the form that kernels for this type of weight read; makes it if it is not in `made`.
VulkanBackend::Input VulkanBackend::input_of(const Tensor& x, DType weight, RowsOfX which,
                                             OtherForms& made) {
    if (made.norm) return {made.norm->x, stride_words(made.norm->x), &*made.norm};
    if (is_quantised(weight) && x.dtype == DType::F32) {
        if (!made.quantised) {
            made.quantised = dense_prefix(scratch_.quantised, x.rows, x.cols);
            execute(Copy{made.quantised, x});
        }
        return {made.quantised, stride_words(made.quantised)};
    }
    if (!takes_halves(*device_, weight) || is_row(which, x.rows)) return {x, stride_words(x)};
    if (!std::exchange(made.halves, true)) {
        halves_for_.clear();
        put_halves(x);
    }
    return {scratch_.halves, padded_rows(x.rows)};
}

// If a weight has float rows, too, its quantised rows get a quantised copy of x.
template <>
void VulkanBackend::execute(const Matmul& op) {
    OtherForms made = forms_for(op.weight);
    for (const WeightPart& part : static_cast<const VulkanWeight&>(op.weight).parts()) {
        const WeightSegment& place = part.segment;
        // Only the columns of this part, so that parts need not wait for each other.
        const Product product = {
            .out = op.out.col_range(place.first_row, place.rows),
            .accumulate = op.accumulate,
            .bias = op.bias ? op.bias.col_range(place.first_row, place.rows) : Tensor()};
        multiply(product, op.x, input_of(op.x, place.dtype, RowsOfX::all, made), part);
    }
}

// Multiplies with the epilogue in the kernel. Returns false, and does nothing, unless the weight is
// in one part and a workgroup can have both halves that the epilogue combines.
bool VulkanBackend::finish(const Product& product, const Tensor& x, const Weight& weight) {
    const auto parts = static_cast<const VulkanWeight&>(weight).parts();
    const DType type = parts[0].segment.dtype;
    if (parts.size() > 1 || product.apart % kStripRows != 0 ||
        !finishes(*device_, type, x.rows, {product.epilogue, product.packed}))
        return false;
    OtherForms made = forms_for(weight);
    multiply(product, x, input_of(x, type, RowsOfX::all, made), parts[0]);
    return true;
}

template <>
void VulkanBackend::execute(const MatmulGated& op) {
    const Product product = {.out = op.out,
                             .bias = op.bias,
                             .epilogue = Epilogue::gated,
                             .packed = is_quantised(op.out.dtype),
                             .apart = op.out.cols};
    if (op.activation == Activation::silu && finish(product, op.x, op.weight)) return;
    execute(Matmul{op.gate_up, op.x, op.weight, Accumulate::no, op.bias});
    execute(Gated{op.out, op.gate_up, op.activation});
}

template <>
void VulkanBackend::execute(const MatmulRope& op) {
    const Product product = {.out = op.qkv,
                             .bias = op.bias,
                             .epilogue = Epilogue::rotated,
                             .packed = op.kv.k.dtype == DType::F16,
                             .apart = op.shape.head_dim / 2,
                             .rope = &op};
    if (finish(product, op.x, op.weight)) return;
    execute(Matmul{op.qkv, op.x, op.weight, Accumulate::no, op.bias});
    execute(RopeAppend{op.qkv, op.rope, op.rows, op.shape, op.kv});
}

void VulkanBackend::multiply(const Product& product, const Tensor& x, const Input& input,
                             const WeightPart& part) {
    const WeightSegment& segment = part.segment;
    const MatmulForm form = {product.epilogue, product.packed, input.norm != nullptr};
    const auto [kernel, columns, strips] =
        matmul_kernel(*device_, segment.dtype, RowsOfX::all, x.rows, {segment.rows, x.cols}, form);
    MatmulParams params = {};
    params.rows = uint32_t(segment.rows);
    params.inner = uint32_t(x.cols);
    params.panels = uint32_t(strip_layout(segment.dtype, x.cols).panels);
    params.columns = uint32_t(x.rows);
    params.x_stride = input.stride;
    params.out_stride = stride_words(product.out);
    params.accumulates = product.accumulate == Accumulate::yes;
    params.has_bias = bool(product.bias);
    params.apart = uint32_t(product.apart / kStripRows);
    // Bindings that the kernel does not use must be bound all the same.
    std::array<Access, kMaxBindings> bindings;
    bindings.fill(reads(input.tensor));
    bindings[0] = bindings[7] = bindings[8] = writes(product.out);
    bindings[2] = reads(part.words);
    bindings[3] = reads_or(product.bias, input.tensor);
    if (const MatmulRope* rope = product.rope) {
        params.heads = uint32_t(rope->shape.heads);
        params.kv_heads = uint32_t(rope->shape.kv_heads);
        params.head_dim = uint32_t(rope->shape.head_dim);
        params.rope_stride = stride_words(rope->rope);
        params.k_stride = stride_words(rope->kv.k);
        params.v_stride = stride_words(rope->kv.v);
        params.pages_stride = stride_words(rope->kv.page_table);
        bindings[4] = reads(rope->rope);
        bindings[5] = reads(rope->rows.block);
        bindings[6] = reads(rope->kv.page_table);
        bindings[7] = writes(rope->kv.k);
        bindings[8] = writes(rope->kv.v);
    }
    if (input.norm) {
        params.inverse_inner = 1.0f / float(x.cols);
        params.epsilon = input.norm->epsilon;
        bindings[9] = reads(input.norm->weight);
    }
    dispatch(kernel, params, bindings,
             {groups(x.rows, columns), groups(segment.rows, strips * kStripRows)},
             double(x.rows) * x.cols * segment.rows);
}

template <>
void VulkanBackend::execute(const ExpertMatmul& op) {
    OtherForms made;
    const int experts = op.weight.rows / op.out.cols, each = op.weight.matrix_rows;
    for (const WeightPart& part : static_cast<const VulkanWeight&>(op.weight).parts()) {
        const Input input = input_of(op.x, part.segment.dtype, RowsOfX::of_experts, made);
        const int first = part.segment.first_row / each, last = first + part.matrices - 1;
        for (int stack = first / experts; stack <= last / experts; ++stack)
            multiply_experts(op, input, part, stack);
    }
}

// Multiplies by the experts of a stack that a part holds, at least one. A workgroup has strips of
// one expert and some places of one of its tiles; surplus workgroups do nothing.
void VulkanBackend::multiply_experts(const ExpertMatmul& op, const Input& input,
                                     const WeightPart& part, int stack) {
    const WeightSegment& segment = part.segment;
    const Routing& routing = op.routing;
    const int experts = op.weight.rows / op.out.cols, each = op.weight.matrix_rows;
    const int most = std::min(routing.rows(), kExpertTileRows);  // most places of a tile
    const auto [kernel, columns, strips] =
        matmul_kernel(*device_, segment.dtype, RowsOfX::of_experts, most, {each, op.x.cols});
    const Tensor to = op.out.col_range(stack * each + segment.first_row % each, segment.rows);
    const uint32_t tile_parts = groups(most, columns);
    const ExpertMatmulParams params = {
        .rows = uint32_t(segment.rows),
        .inner = uint32_t(op.x.cols),
        .panels = uint32_t(strip_layout(segment.dtype, op.x.cols).panels),
        .x_stride = input.stride,
        .out_stride = stride_words(op.out),
        .each = uint32_t(op.x.rows == routing.rows() ? routing.chosen() : 1),
        .tile_parts = tile_parts,
        .first = uint32_t(stack * experts - segment.first_row / each),
        .count = uint32_t(part.matrices)};
    dispatch(kernel, params,
             {writes(to), reads(input.tensor), reads(part.words), reads(routing.order),
              reads(routing.tiles)},
             {uint32_t(routing.tiles.rows) * tile_parts, groups(segment.rows, strips * kStripRows)},
             double(routing.places()) * op.x.cols * segment.rows);
}

}  // namespace aerie::vulkan
