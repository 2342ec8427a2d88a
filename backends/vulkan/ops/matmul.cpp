// Products part by part: a part has rows of one type in one binding. What a kernel wants of x in
// another form is made once, before the first part that does.
#include <algorithm>
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

// What a norm has made already.
VulkanBackend::OtherForms VulkanBackend::forms_for(const Weight& reader) const {
    return {.halves = std::ranges::find(halves_for_, &reader) != halves_for_.end()};
}

// x as a kernel for this type of weight reads it.
VulkanBackend::Input VulkanBackend::input_of(const Tensor& x, DType weight, OtherForms& made) {
    if (is_quantised(weight) && x.dtype == DType::F32) {
        if (!made.quantised) {
            made.quantised = dense_prefix(scratch_.quantised, x.rows, x.cols);
            execute(Copy{made.quantised, x});
        }
        return {made.quantised, stride_words(made.quantised)};
    }
    if (!takes_halves(*device_, weight)) return {x, stride_words(x)};
    if (!std::exchange(made.halves, true)) {
        halves_for_.clear();
        put_halves(x);
    }
    return {scratch_.halves, padded_rows(x.rows)};
}

// Where there are rows of floats among them, quantised ones get a quantised copy of x.
template <>
void VulkanBackend::execute(const Matmul& op) {
    OtherForms made = forms_for(op.weight);
    for (const WeightPart& part : static_cast<const VulkanWeight&>(op.weight).parts())
        multiply(op, input_of(op.x, part.segment.dtype, made), part);
}

void VulkanBackend::multiply(const Matmul& op, const Input& input, const WeightPart& part) {
    const WeightSegment& segment = part.segment;
    const auto [kernel, columns, strips] =
        matmul_kernel(*device_, segment.dtype, Rows::all, op.x.rows, op.x.cols);
    // Its own columns alone, so that parts need not wait for each other.
    const Tensor to = op.out.col_range(segment.first_row, segment.rows);
    const Tensor added =
        op.bias ? op.bias.col_range(segment.first_row, segment.rows) : input.tensor;
    const MatmulParams params = {.rows = uint32_t(segment.rows),
                                 .inner = uint32_t(op.x.cols),
                                 .panels = uint32_t(strip_layout(segment.dtype, op.x.cols).panels),
                                 .columns = uint32_t(op.x.rows),
                                 .x_stride = input.stride,
                                 .out_stride = stride_words(op.out),
                                 .accumulates = op.accumulate == Accumulate::yes,
                                 .has_bias = bool(op.bias)};
    dispatch(kernel, params, {writes(to), reads(input.tensor), reads(part.words), reads(added)},
             {groups(op.x.rows, columns), groups(segment.rows, strips * kStripRows)},
             double(op.x.rows) * op.x.cols * segment.rows);
}

template <>
void VulkanBackend::execute(const ExpertMatmul& op) {
    OtherForms made;
    const int experts = op.weight.rows / op.out.cols, each = op.weight.matrix_rows;
    for (const WeightPart& part : static_cast<const VulkanWeight&>(op.weight).parts()) {
        const Input input = input_of(op.x, part.segment.dtype, made);
        const int first = part.segment.first_row / each, last = first + part.matrices - 1;
        for (int stack = first / experts; stack <= last / experts; ++stack)
            multiply_experts(op, input, part, stack);
    }
}

// The experts of a stack that a part holds, at least one; a workgroup has strips of one of them
// and some places of a tile, if there are so many.
void VulkanBackend::multiply_experts(const ExpertMatmul& op, const Input& input,
                                     const WeightPart& part, int stack) {
    const WeightSegment& segment = part.segment;
    const Routing& routing = op.routing;
    const int experts = op.weight.rows / op.out.cols, each = op.weight.matrix_rows;
    const int most = std::min(routing.rows(), kExpertTileRows);  // places of a tile
    const auto [kernel, columns, strips] =
        matmul_kernel(*device_, segment.dtype, Rows::of_experts, most, op.x.cols);
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
