// Push constants of each shader, behind the offsets of its bindings; the same text for GLSL and
// C++. Strides are in 32-bit words, whatever the elements are.
#ifdef __cplusplus
#pragma once
#include <cstdint>
namespace aerie::vulkan {
using uint = uint32_t;
#endif

struct UnitParams {  // copy, add, swiglu: out[rows, units] from a and b
    uint units;      // elements of a row, or groups of 32 of them if quantised
    uint out_stride, a_stride, b_stride;
};

struct EmbedParams {
    uint cols, out_stride;
    uint first_row, rows;  // of this part of the table
    uint panels;           // of a strip
};

struct NormParams {
    uint cols, units, out_stride, x_stride;
    float inverse_cols, epsilon;
};

struct MatmulParams {
    uint first_row, rows;  // of the weight, which this part holds
    uint inner, panels;    // columns of x; panels of a strip
    uint columns;          // rows of x
    uint x_stride, out_stride;
    uint accumulates, has_bias;
};

struct RopeParams {
    uint heads, kv_heads, head_dim;
    uint qkv_stride, rope_stride, k_stride, v_stride, pages_stride;
};

struct AttentionParams {
    uint heads, group, head_dim;  // group: query heads of a kv head
    uint first_row;               // of this block of rows
    uint qkv_stride, k_stride, v_stride, pages_stride;
    uint chunks;  // that the scratch has room for, of each head
    float scale;
};

struct MergeParams {
    uint heads, head_dim, together;  // heads that a workgroup merges
    uint first_row, units, out_stride;
    uint chunks;
};

struct GatherParams {
    uint cols, out_stride, x_stride;
};

struct CompactParams {
    uint words, count;  // of a cache row; of rows that move
    uint sequence, to_slot;
    uint k_stride, v_stride, pages_stride;
};

struct NoiseParams {
    uint vocab, out_stride;
    uint seed_low, seed_high;
};

struct ProbeParams {
    uint quads;  // of 16 bytes, of one invocation
};

#ifdef __cplusplus
}  // namespace aerie::vulkan
#endif
