// The ops that read weights: embed, matmul and expert_matmul.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "core/quant.h"
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"
#include "vulkan/weight.h"

namespace aerie::vulkan {

namespace {

constexpr int kMostColumns = 8;  // rows of x that an invocation of matmul has

// Shaders of one kind of matmul for weights of some type.
struct MatmulShaders {
    explicit MatmulShaders(const std::string& name)
        : plain(name),
          dot(name + "_dot"),
          fetch(name + "_fetch"),
          cooperative(name + "_cooperative") {}

    std::string plain;
    std::string dot;    // of quantised ones, by packed integer dot products
    std::string fetch;  // those, and x is fetched together
    std::string cooperative;
};
struct WeightShaders {
    explicit WeightShaders(DType type)
        : embed(std::string("embed_") + name(type)),
          matmul(std::string("matmul_") + name(type)),
          experts(std::string("expert_matmul_") + name(type)) {}

    std::string embed;
    MatmulShaders matmul, experts;
};

// They live as long as the program: kernels are known by them.
const WeightShaders& shaders_of(DType type) {
    static const auto all = [] {
        std::vector<WeightShaders> made;
        for (int i = 0; i <= int(DType::IQ4_XS); ++i) made.emplace_back(DType(i));
        return made;
    }();
    return all[size_t(type)];
}

// A kernel of matmul, and how many rows of x a workgroup of it has.
struct MatmulKernel {
    Kernel kernel;
    int columns;
};

MatmulKernel cooperative_kernel(const Device& device, const std::string& shader,
                                const MatrixShape& shape, int rows) {
    constexpr unsigned kMost = 64;
    const uint32_t columns = std::clamp(std::bit_ceil(unsigned(rows)), shape.n, kMost);
    const uint32_t subgroups = kCooperativeInvocations / device.traits().widest_subgroup();
    const uint32_t tiles = kStripRows / shape.m * (columns / shape.n);
    return {
        {shader.c_str(), {columns, shape.m, shape.n, shape.k, (tiles + subgroups - 1) / subgroups}},
        int(columns)};
}

// Of matmul_parts: parts of the sum over a row side by side, and groups that are read at once. A
// CPU's compiler takes long for many, and gains nothing.
MatmulKernel parts_kernel(const Device& device, const std::string& shader, uint32_t columns,
                          int inner) {
    const unsigned parts = groups(inner, kSumPart);
    const uint32_t split = device.split() == 1 ? 1 : std::min(std::bit_floor(parts), 4u);
    const bool is_cpu = device.traits().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    const uint32_t turns = is_cpu ? 2 : columns > 4 ? 4 : 8;
    return {{shader.c_str(), {columns, split, turns}}, int(columns)};
}

// Integer products are exact, so few rows may be multiplied in another way than many. The order of
// a sum of floats depends on the kernel, which must therefore be the same for all numbers of rows.
MatmulKernel matmul_kernel(const Device& device, DType type, const MatmulShaders& shaders, int rows,
                           int inner) {
    const MatrixShape shape = device.matrix_shape(type);
    if (shape && (type == DType::F16 || rows > kMostColumns))
        return cooperative_kernel(device, shaders.cooperative, shape, rows);
    const uint32_t columns = std::bit_ceil(unsigned(std::min(rows, kMostColumns)));
    const uint32_t split = uint32_t(device.split()), lanes = device.fetch_lanes();
    if (lanes > 0) return {{shaders.fetch.c_str(), {columns, split, lanes}}, int(columns)};
    if (!is_quantised(type)) return {{shaders.plain.c_str(), {columns, split}}, int(columns)};
    return parts_kernel(device, device.integer_dot() ? shaders.dot : shaders.plain, columns, inner);
}

}  // namespace

template <>
void VulkanBackend::execute(const Embed& op) {
    for (const auto& [words, segment, matrices] :
         static_cast<const VulkanWeight&>(op.table).parts()) {
        const EmbedParams params = {
            .cols = uint32_t(op.out.cols),
            .out_stride = stride_words(op.out),
            .first_row = uint32_t(segment.first_row),
            .rows = uint32_t(segment.rows),
            .panels = uint32_t(strip_layout(segment.dtype, op.table.cols).panels)};
        dispatch({shaders_of(segment.dtype).embed.c_str()}, params,
                 {writes(op.out), reads(words), reads(op.rows.block)},
                 {groups(op.out.cols, kGroupSize), uint32_t(op.out.rows)},
                 double(op.out.rows) * op.out.cols);
    }
}

// Where there are rows of floats among them, quantised ones get a quantised copy of x.
template <>
void VulkanBackend::execute(const Matmul& op) {
    Matmul quantised = op;
    for (const WeightPart& part : static_cast<const VulkanWeight&>(op.weight).parts()) {
        if (!is_quantised(part.segment.dtype)) {
            multiply(op, part);
            continue;
        }
        if (quantised.x.dtype == DType::F32) {
            quantised.x = dense_prefix(scratch_.quantised, op.x.rows, op.x.cols);
            execute(Copy{quantised.x, op.x});
        }
        multiply(quantised, part);
    }
}

void VulkanBackend::multiply(const Matmul& op, const WeightPart& part) {
    const WeightSegment& segment = part.segment;
    const auto [kernel, columns] = matmul_kernel(
        *device_, segment.dtype, shaders_of(segment.dtype).matmul, op.x.rows, op.x.cols);
    // Its own columns alone, so that parts need not wait for each other.
    const Tensor to = op.out.col_range(segment.first_row, segment.rows);
    const Tensor added = op.bias ? op.bias.col_range(segment.first_row, segment.rows) : op.x;
    const MatmulParams params = {.rows = uint32_t(segment.rows),
                                 .inner = uint32_t(op.x.cols),
                                 .panels = uint32_t(strip_layout(segment.dtype, op.x.cols).panels),
                                 .columns = uint32_t(op.x.rows),
                                 .x_stride = stride_words(op.x),
                                 .out_stride = stride_words(op.out),
                                 .accumulates = op.accumulate == Accumulate::yes,
                                 .has_bias = bool(op.bias)};
    dispatch(kernel, params, {writes(to), reads(op.x), reads(part.words), reads(added)},
             {groups(op.x.rows, columns), groups(segment.rows, kStripRows)},
             double(op.x.rows) * op.x.cols * segment.rows);
}

template <>
void VulkanBackend::execute(const ExpertMatmul& op) {
    ExpertMatmul quantised = op;
    const int experts = op.weight.rows / op.out.cols, each = op.weight.matrix_rows;
    for (const WeightPart& part : static_cast<const VulkanWeight&>(op.weight).parts()) {
        const bool copies = is_quantised(part.segment.dtype) && op.x.dtype == DType::F32;
        if (copies && quantised.x.dtype == DType::F32) {
            quantised.x = dense_prefix(scratch_.quantised, op.x.rows, op.x.cols);
            execute(Copy{quantised.x, op.x});
        }
        const int first = part.segment.first_row / each, last = first + part.matrices - 1;
        for (int stack = first / experts; stack <= last / experts; ++stack)
            multiply_experts(copies ? quantised : op, part, stack);
    }
}

// The experts of a stack that a part holds, at least one; a workgroup has a strip of one of them
// and some places of a tile, if there are so many.
void VulkanBackend::multiply_experts(const ExpertMatmul& op, const WeightPart& part, int stack) {
    const WeightSegment& segment = part.segment;
    const Routing& routing = op.routing;
    const int experts = op.weight.rows / op.out.cols, each = op.weight.matrix_rows;
    const int most = std::min(routing.rows(), kExpertTileRows);  // places of a tile
    const auto [kernel, columns] =
        matmul_kernel(*device_, segment.dtype, shaders_of(segment.dtype).experts, most, op.x.cols);
    const Tensor to = op.out.col_range(stack * each + segment.first_row % each, segment.rows);
    const uint32_t tile_parts = groups(most, columns);
    const ExpertMatmulParams params = {
        .rows = uint32_t(segment.rows),
        .inner = uint32_t(op.x.cols),
        .panels = uint32_t(strip_layout(segment.dtype, op.x.cols).panels),
        .x_stride = stride_words(op.x),
        .out_stride = stride_words(op.out),
        .each = uint32_t(op.x.rows == routing.rows() ? routing.chosen() : 1),
        .tile_parts = tile_parts,
        .first = uint32_t(stack * experts - segment.first_row / each),
        .count = uint32_t(part.matrices)};
    dispatch(
        kernel, params,
        {writes(to), reads(op.x), reads(part.words), reads(routing.order), reads(routing.tiles)},
        {uint32_t(routing.tiles.rows) * tile_parts, groups(segment.rows, kStripRows)},
        double(routing.places()) * op.x.cols * segment.rows);
}

}  // namespace aerie::vulkan
