// Op Attention, for some rows at a time: one dispatch computes the partial results of all chunks, a
// second one merges the chunks.
#include <algorithm>
#include <bit>

#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

namespace {

// Attention does about so many times fewer multiply-adds a second than matmul. The limits of
// submissions are in multiply-adds of matmul.
constexpr double kAttentionWork = 20;

// Workgroups that keep every GPU busy, and a driver that runs on a CPU.
constexpr uint32_t kWorkgroups = 1024, kCpuWorkgroups = 64;

// The work of a workgroup. A pair is a row and a query head, a group is 64 invocations. In
// attention_fetch, where each invocation has a pair, there are no groups (pairs_of_group is 0).
struct Form {
    uint32_t pairs, pairs_of_group;
    uint32_t most_ahead;  // quads of the cache that an invocation loads before it uses them
    uint32_t mixed;       // positions of V in an iteration of its loop

    bool fetches_together() const { return pairs_of_group == 0; }
};

// On a CPU unrolled loops only take time to compile: there is no latency of memory to hide.
constexpr Form kCpuForm = {4, 1, 1, 4}, kGpuForm = {16, 4, 16, 16};

// Query heads of a kv head per workgroup: the largest divisor of `queries` up to form.pairs.
uint32_t heads_together(uint32_t queries, const Form& form) {
    uint32_t heads = std::min(queries, form.pairs);
    while (queries % heads != 0) --heads;
    return heads;
}

Form form_of(const Device& device, int head_dim) {
    Form form = device.split() == 1 ? kCpuForm : kGpuForm;
    if (device.traits().type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
        form.most_ahead = kCpuForm.most_ahead;
        form.mixed = kCpuForm.mixed;
    }
    constexpr int kMaxDim = 256;  // kMaxDim of attention_fetch.comp
    if (device.fetch_lanes() > 0 && head_dim <= kMaxDim) form = {device.fetch_lanes(), 0, 0, 0};
    return form;
}

Kernel kernel_of(DType cache, int head_dim, uint32_t pairs, const Form& form) {
    if (form.fetches_together())
        return {"attention_fetch", {cache == DType::F16, uint32_t(head_dim), form.pairs}};
    const uint32_t group_pairs = pairs == 1 ? 1 : form.pairs_of_group;
    const uint32_t groups = std::bit_ceil((pairs + group_pairs - 1) / group_pairs);
    const uint32_t quads = cache == DType::F16 ? 8 : 16;  // in 64 elements of a position
    return {"attention",
            {cache == DType::F16, groups, group_pairs, std::min(form.most_ahead, quads / groups),
             form.mixed}};
}

}  // namespace

template <>
void VulkanBackend::execute(const Attention& op) {
    const Tensor &out = op.out, &qkv = op.qkv;
    const AttentionShape& shape = op.shape;
    const KvLayer& kv = op.kv;
    const int heads = shape.heads, head_dim = shape.head_dim;
    const Form form = form_of(*device_, head_dim);
    int most_chunks = std::min(scratch_.chunks, scratch_.attention.cols / (heads * (head_dim + 2)));
    if (op.window > 0) most_chunks = std::min(most_chunks, chunks_of_window(op.window));
    const uint32_t window = op.window > 0 ? uint32_t(op.window) : UINT32_MAX;
    const int together = is_quantised(out.dtype) && head_dim % kGroup != 0 ? 2 : 1;
    AttentionParams params = {.heads = uint32_t(heads),
                              .group = uint32_t(heads / shape.kv_heads),
                              .head_dim = uint32_t(head_dim),
                              .first_row = 0,
                              .rows = 0,
                              .own_heads = heads_together(uint32_t(heads / shape.kv_heads), form),
                              .own_rows = 0,
                              .qkv_stride = stride_words(qkv),
                              .k_stride = stride_words(kv.k),
                              .v_stride = stride_words(kv.v),
                              .pages_stride = stride_words(kv.page_table),
                              .most_chunks = uint32_t(most_chunks),
                              .window = window,
                              .scale = op.scale};
    MergeParams merge = {.heads = uint32_t(heads),
                         .head_dim = uint32_t(head_dim),
                         .together = uint32_t(together),
                         .first_row = 0,
                         .units = units(out) * uint32_t(together) / uint32_t(heads),
                         .out_stride = stride_words(out),
                         .most_chunks = uint32_t(most_chunks),
                         .window = window};
    for (int first = 0; first < qkv.rows; first += scratch_.attention.rows) {
        const int count = std::min(scratch_.attention.rows, qkv.rows - first);
        const double chunk_work = kAttentionWork * 2.0 * count * heads * head_dim * kPageSize;
        const Tensor parts = scratch_.attention.row_range(0, count);
        params.first_row = merge.first_row = uint32_t(first);
        params.rows = uint32_t(count);
        params.own_rows = std::min(std::bit_ceil(uint32_t(count)), form.pairs / params.own_heads);
        const uint32_t across = uint32_t(heads) / params.own_heads;
        const uint32_t down = groups(count, int(params.own_rows));
        const uint32_t busy = form.fetches_together() ? kCpuWorkgroups : kWorkgroups;
        const uint32_t deep =
            std::clamp(busy / (across * down), 1u, uint32_t(most_chunks) + 2 * params.own_rows);
        dispatch(kernel_of(kv.k.dtype, head_dim, params.own_heads * params.own_rows, form), params,
                 {writes(parts), reads(qkv), reads(op.rows.block), reads(kv.page_table),
                  reads(kv.k), reads(kv.v)},
                 {across, down, deep}, chunk_work, chunk_work * most_chunks);
        const double merge_work = kAttentionWork * double(count) * heads * head_dim;
        const uint32_t lanes = device_->fetch_lanes();  // invocations with a group of outputs each
        const Kernel merging = lanes > 0 ? Kernel{"attention_merge_fetch", {quantises(out), lanes}}
                                         : Kernel{"attention_merge", {quantises(out)}};
        const uint32_t merged =
            lanes > 0 ? groups(heads * head_dim, kGroup * int(lanes)) : uint32_t(heads / together);
        dispatch(merging, merge, {writes(out), reads(parts), reads(op.rows.block)},
                 {merged, uint32_t(count)}, merge_work, merge_work * most_chunks);
    }
}

}  // namespace aerie::vulkan
