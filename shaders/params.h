// Push constants of each shader, which follow the offsets of its bindings. This file is compiled as
// GLSL and as C++. Strides are in 32-bit words, whatever the elements are.
#ifdef __cplusplus
#pragma once
#include <cstdint>
namespace aerie::vulkan {
using uint = uint32_t;
#endif

struct UnitParams {  // copy, add, swiglu: out[rows, units] from a and b
    uint units;      // elements of a row, or groups of 32 elements if `out` is quantised
    uint out_stride, a_stride, b_stride;
};

struct EmbedParams {
    uint cols, out_stride;
    uint first_row, rows;  // rows in this part of the table
    uint panels;           // panels per strip
};

struct NormParams {
    uint cols, units;  // units: in rms_norm_halves the padded number of rows
    uint out_stride, x_stride;
    float inverse_cols, epsilon;
};

struct HalvesParams {
    uint cols, a_stride;
    uint rows;  // padded to a multiple of four
};

struct HeadNormParams {
    uint heads, head_dim;  // heads: query heads, which come first
    uint qkv_stride;
    float inverse_dim, epsilon;
};

struct MatmulParams {
    uint rows;           // output rows in this part of the weight
    uint inner, panels;  // columns of x; panels per strip
    uint columns;        // rows of x
    uint x_stride, out_stride;
    uint accumulates, has_bias;
    // For lib/result.glsl and lib/norm_here.glsl.
    uint apart;  // strips from the first to the second strip of a workgroup
    uint heads, kv_heads, head_dim;
    uint rope_stride, k_stride, v_stride, pages_stride;
    float inverse_inner, epsilon;
};

struct ExpertMatmulParams {
    uint rows, inner, panels;  // rows: of an expert, in this part of the weight
    uint x_stride, out_stride;
    uint each;          // places per row of x
    uint tile_parts;    // workgroups per tile and strip
    uint first, count;  // expert e is matrix first + e of the part, if that is below count
};

struct RouteParams {
    uint experts, chosen;
    uint logits_stride, ids_stride, weights_stride;
    uint normalised;
};

struct PlacesParams {
    uint places, chosen, ids_stride, experts, most_tiles;
};

struct ExpertSumParams {
    uint cols, chosen;
    uint out_stride, x_stride, weights_stride;
    uint accumulate;
};

struct RopeParams {
    uint heads, kv_heads, head_dim;
    uint qkv_stride, rope_stride, k_stride, v_stride, pages_stride;
};

struct AttentionParams {
    uint heads, group, head_dim;  // group: query heads per kv head
    uint first_row, rows;         // rows of this block
    uint own_heads, own_rows;     // per workgroup: at most 16 pairs
    uint qkv_stride, k_stride, v_stride, pages_stride;
    uint most_chunks;  // chunks per row and head in scratch
    uint window;       // most positions that a row attends to
    float scale;
};

struct MergeParams {
    uint heads, head_dim;
    uint together;           // heads per workgroup
    uint first_row;          // first row of this block
    uint units, out_stride;  // units of `together` heads
    uint most_chunks, window;
};

struct GatherParams {
    uint cols, out_stride, x_stride;
};

struct CompactParams {
    uint words, count;  // words of a cache row; number of moves
    uint k_stride, v_stride, pages_stride;
};

struct NoiseParams {
    uint vocab, out_stride;
    uint seed_low, seed_high;
};

// Choices from rows of logits.
const uint kSlice = 4096;  // tokens of a row per workgroup
const uint kEditSlice = 2048;
const uint kDigits = 2048;  // values of a digit in the search for a cut
const uint kCutWords = 8;   // words of a row's cut, see cut_descend.comp

struct ChoiceParams {  // rows of logits and their rules
    uint vocab, logits_stride;
    uint has_rules, rules_stride;  // rules_stride 0: one rule for all rows
};

struct EditParams {
    ChoiceParams choice;
    uint seen_stride, mask_stride;  // 0: there is none
    uint has_map;
    uint has_rows, first_row;  // has_rows: rows are drafted; first_row: of the block
};

struct BestParams {
    ChoiceParams choice;
    uint slices, noisy, noise_stride;
    uint is_last;  // the last step of a choice: writes ids
};

struct CutParams {
    ChoiceParams choice;
    uint level;    // number of digits known: three of the key, then two of the id
    uint by_mass;  // searches for top-p, after the search for top-k
};

struct TopKParams {
    ChoiceParams choice;
    uint slices, noisy, wanted, width;  // wanted: k; width: candidates that are ranked
    uint has_map, ids_stride, log_probs_stride;
};

struct BeamParams {
    uint rows, k, ids_stride, log_probs_stride;
    uint width, table_offset, next_slot;
    uint from_root, sum_values, has_selection;
};

struct ProbeParams {
    uint quads;  // quads of 16 bytes per invocation
};

#ifdef __cplusplus
}  // namespace aerie::vulkan
#endif
