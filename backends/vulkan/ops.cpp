// The ops that go row by row: a few lines of glue each.
#include <algorithm>
#include <bit>
#include <cmath>

#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"
#include "vulkan/weight.h"

namespace aerie::vulkan {

namespace {

constexpr int kGroupSize = 64;   // invocations of a workgroup, unless a shader says otherwise
constexpr int kMostColumns = 8;  // rows of x that an invocation of matmul has
// Attention does about so many times fewer multiply-adds a second than matmul, which is what
// submissions are measured by.
constexpr double kAttentionWork = 20;

// Shaders that read a weight of some type.
struct WeightShaders {
    const char *embed, *matmul;
    const char* matmul_dot;    // by packed integer dot products
    const char* matmul_fetch;  // those, and x is fetched together
    const char* matmul_cooperative = nullptr;
};

WeightShaders shaders_of(DType type) {
    switch (type) {
        case DType::F32:
            return {"embed_f32", "matmul_f32", "matmul_f32", "matmul_f32_fetch"};
        case DType::F16:
            return {"embed_f16", "matmul_f16", "matmul_f16", "matmul_f16_fetch",
                    "matmul_f16_cooperative"};
        case DType::BF16:
            return {"embed_bf16", "matmul_bf16", "matmul_bf16", "matmul_bf16_fetch"};
        case DType::Q8_0:
            return {"embed_q8_0", "matmul_q8_0", "matmul_q8_0_dot", "matmul_q8_0_fetch",
                    "matmul_q8_0_cooperative"};
        default:
            return {"embed_q4_0", "matmul_q4_0", "matmul_q4_0_dot", "matmul_q4_0_fetch",
                    "matmul_q4_0_cooperative"};
    }
}

// A kernel of matmul, and how many rows of x a workgroup of it has.
struct MatmulKernel {
    Kernel kernel;
    int columns;
};

MatmulKernel cooperative_kernel(const Device& device, DType type, const MatrixShape& shape,
                                int rows) {
    constexpr unsigned kMost = 64;
    const uint32_t columns = std::clamp(std::bit_ceil(unsigned(rows)), shape.n, kMost);
    const uint32_t subgroups = kCooperativeInvocations / device.traits().widest_subgroup();
    const uint32_t tiles = kStripRows / shape.m * (columns / shape.n);
    return {{shaders_of(type).matmul_cooperative,
             {columns, shape.m, shape.n, shape.k, (tiles + subgroups - 1) / subgroups}},
            int(columns)};
}

// Integer products are exact, so few rows may be multiplied in another way than many. The order of
// a sum of floats depends on the kernel, which must therefore be the same for all numbers of rows.
MatmulKernel matmul_kernel(const Device& device, DType type, int rows) {
    const MatrixShape shape = device.matrix_shape(type);
    if (shape && (type == DType::F16 || rows > kMostColumns))
        return cooperative_kernel(device, type, shape, rows);
    const WeightShaders shaders = shaders_of(type);
    const uint32_t lanes = device.fetch_lanes();
    const uint32_t columns = std::bit_ceil(unsigned(std::min(rows, kMostColumns)));
    const char* shader = lanes > 0              ? shaders.matmul_fetch
                         : device.integer_dot() ? shaders.matmul_dot
                                                : shaders.matmul;
    return {{shader, {columns, uint32_t(device.split()), lanes}}, int(columns)};
}

uint32_t quantises(const Tensor& out) {
    return is_quantised(out.dtype);
}

}  // namespace

void VulkanBackend::do_embed(Tensor out, const Weight& table, Rows rows) {
    for (const auto& [words, segment] : static_cast<const VulkanWeight&>(table).parts()) {
        const EmbedParams params = {
            .cols = uint32_t(out.cols),
            .out_stride = stride_words(out),
            .first_row = uint32_t(segment.first_row),
            .rows = uint32_t(segment.rows),
            .panels = uint32_t(strip_layout(segment.dtype, table.cols).panels)};
        run({shaders_of(segment.dtype).embed}, params,
            {writes(out), reads(words), reads(rows.block)},
            {groups(out.cols, kGroupSize), uint32_t(out.rows)}, double(out.rows) * out.cols);
    }
}

void VulkanBackend::do_rms_norm(Tensor out, Tensor x, Tensor weight, float epsilon) {
    const NormParams params = {.cols = uint32_t(x.cols),
                               .units = units(out),
                               .out_stride = stride_words(out),
                               .x_stride = stride_words(x),
                               .inverse_cols = 1.0f / float(x.cols),
                               .epsilon = epsilon};
    run({"rms_norm", {quantises(out)}}, params, {writes(out), reads(x), reads(weight)},
        {uint32_t(x.rows)}, 2.0 * x.rows * x.cols);
}

// Where there are rows of floats among them, quantised ones get a quantised copy of x.
void VulkanBackend::do_matmul(Tensor out, Tensor x, const Weight& w, Tensor bias, Accumulate acc) {
    Tensor quantised = x;
    for (const WeightPart& part : static_cast<const VulkanWeight&>(w).parts()) {
        if (!is_quantised(part.segment.dtype)) {
            multiply(out, x, part, bias, acc);
            continue;
        }
        if (quantised.dtype == DType::F32) {
            quantised = dense_prefix(scratch_.quantised, x.rows, x.cols);
            do_copy(quantised, x);
        }
        multiply(out, quantised, part, bias, acc);
    }
}

void VulkanBackend::multiply(Tensor out, Tensor x, const WeightPart& part, Tensor bias,
                             Accumulate acc) {
    const WeightSegment& segment = part.segment;
    const auto [kernel, columns] = matmul_kernel(*device_, segment.dtype, x.rows);
    // Its own columns alone, so that parts need not wait for each other.
    const Tensor to = out.col_range(segment.first_row, segment.rows);
    const Tensor added = bias ? bias.col_range(segment.first_row, segment.rows) : x;
    const MatmulParams params = {.rows = uint32_t(segment.rows),
                                 .inner = uint32_t(x.cols),
                                 .panels = uint32_t(strip_layout(segment.dtype, x.cols).panels),
                                 .columns = uint32_t(x.rows),
                                 .x_stride = stride_words(x),
                                 .out_stride = stride_words(out),
                                 .accumulates = acc == Accumulate::yes,
                                 .has_bias = bool(bias)};
    run(kernel, params, {writes(to), reads(x), reads(part.words), reads(added)},
        {groups(segment.rows, kStripRows), groups(x.rows, columns)},
        double(x.rows) * x.cols * segment.rows);
}

void VulkanBackend::do_rope_append(Tensor qkv, Tensor rope, Rows rows, const AttentionShape& shape,
                                   const KvLayer& kv) {
    const RopeParams params = {.heads = uint32_t(shape.heads),
                               .kv_heads = uint32_t(shape.kv_heads),
                               .head_dim = uint32_t(shape.head_dim),
                               .qkv_stride = stride_words(qkv),
                               .rope_stride = stride_words(rope),
                               .k_stride = stride_words(kv.k),
                               .v_stride = stride_words(kv.v),
                               .pages_stride = stride_words(kv.page_table)};
    run({"rope_append", {kv.k.dtype == DType::F16}}, params,
        {writes(qkv), reads(rope), reads(rows.block), reads(kv.page_table), writes(kv.k),
         writes(kv.v)},
        {groups(qkv.cols / 4, kGroupSize), uint32_t(qkv.rows)}, 4.0 * qkv.rows * qkv.cols);
}

void VulkanBackend::do_attention(Tensor out, Tensor qkv, Rows rows, const AttentionShape& shape,
                                 const KvLayer& kv) {
    constexpr uint32_t kAtOnce = 8;  // workgroups that share the chunks of a head
    const int heads = shape.heads, head_dim = shape.head_dim;
    const int most_chunks =
        std::min(scratch_.chunks, scratch_.attention.cols / (heads * (head_dim + 2)));
    const int together = is_quantised(out.dtype) && head_dim % kGroup != 0 ? 2 : 1;
    AttentionParams params = {.heads = uint32_t(heads),
                              .group = uint32_t(heads / shape.kv_heads),
                              .head_dim = uint32_t(head_dim),
                              .first_row = 0,
                              .qkv_stride = stride_words(qkv),
                              .k_stride = stride_words(kv.k),
                              .v_stride = stride_words(kv.v),
                              .pages_stride = stride_words(kv.page_table),
                              .most_chunks = uint32_t(most_chunks),
                              .scale = float(1.0 / std::sqrt(double(head_dim)))};
    MergeParams merge = {.heads = uint32_t(heads),
                         .head_dim = uint32_t(head_dim),
                         .together = uint32_t(together),
                         .first_row = 0,
                         .units = units(out) * uint32_t(together) / uint32_t(heads),
                         .out_stride = stride_words(out),
                         .most_chunks = uint32_t(most_chunks)};
    for (int first = 0; first < qkv.rows; first += scratch_.attention.rows) {
        const int count = std::min(scratch_.attention.rows, qkv.rows - first);
        const double chunk_work = kAttentionWork * 2.0 * count * heads * head_dim * kPageSize;
        const Tensor parts = scratch_.attention.row_range(0, count);
        params.first_row = merge.first_row = uint32_t(first);
        run({"attention", {kv.k.dtype == DType::F16}}, params,
            {writes(parts), reads(qkv), reads(rows.block), reads(kv.page_table), reads(kv.k),
             reads(kv.v)},
            {uint32_t(heads), uint32_t(count), std::min(uint32_t(most_chunks), kAtOnce)},
            chunk_work, chunk_work * most_chunks);
        const double merge_work = kAttentionWork * double(count) * heads * head_dim;
        run({"attention_merge", {quantises(out)}}, merge,
            {writes(out), reads(parts), reads(rows.block)},
            {uint32_t(heads / together), uint32_t(count)}, merge_work, merge_work * most_chunks);
    }
}

void VulkanBackend::do_swiglu(Tensor out, Tensor gate_up) {
    const UnitParams params = {units(out), stride_words(out), stride_words(gate_up), 0};
    run({"swiglu", {quantises(out)}}, params, {writes(out), reads(gate_up)},
        {groups(int(params.units), kGroupSize), uint32_t(out.rows)}, 20.0 * out.rows * out.cols);
}

void VulkanBackend::do_add(Tensor out, Tensor a, Tensor b) {
    const UnitParams params = {units(out), stride_words(out), stride_words(a), stride_words(b)};
    run({"add"}, params, {writes(out), reads(a), reads(b)},
        {groups(out.cols, kGroupSize), uint32_t(out.rows)}, double(out.rows) * out.cols);
}

void VulkanBackend::do_copy(Tensor out, Tensor x) {
    const UnitParams params = {units(out), stride_words(out), stride_words(x), 0};
    run({"copy", {quantises(out)}}, params, {writes(out), reads(x)},
        {groups(int(params.units), kGroupSize), uint32_t(out.rows)}, double(out.rows) * out.cols);
}

void VulkanBackend::do_gather_rows(Tensor out, Tensor x, Tensor index) {
    const GatherParams params = {uint32_t(out.cols), stride_words(out), stride_words(x)};
    run({"gather_rows"}, params, {writes(out), reads(x), reads(index)},
        {groups(out.cols, kGroupSize), uint32_t(out.rows)}, double(out.rows) * out.cols);
}

void VulkanBackend::do_kv_compact(const KvLayer& kv, int sequence, Tensor from_slots, int to_slot) {
    const int words = int(size_bytes(kv.k.dtype, size_t(kv.k.cols)) / 4);
    const CompactParams params = {.words = uint32_t(words),
                                  .count = uint32_t(from_slots.cols),
                                  .sequence = uint32_t(sequence),
                                  .to_slot = uint32_t(to_slot),
                                  .k_stride = stride_words(kv.k),
                                  .v_stride = stride_words(kv.v),
                                  .pages_stride = stride_words(kv.page_table)};
    run({"kv_compact"}, params,
        {writes(kv.k), writes(kv.v), reads(from_slots), reads(kv.page_table)},
        {groups(words, kGroupSize)}, double(words) * from_slots.cols);
}

void VulkanBackend::do_noise(Tensor out, uint64_t seed, Tensor positions) {
    const NoiseParams params = {uint32_t(out.cols), stride_words(out), uint32_t(seed),
                                uint32_t(seed >> 32)};
    const int counters = (out.cols + 63) / 64 * 16;
    run({"noise"}, params, {writes(out), reads(positions)},
        {groups(counters, kGroupSize), uint32_t(out.rows)}, 40.0 * out.rows * out.cols);
}

}  // namespace aerie::vulkan
