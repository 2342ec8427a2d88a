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
    uint cols, units;  // units: in halves, rows that there is room for
    uint out_stride, x_stride;
    float inverse_cols, epsilon;
};

struct HalvesParams {
    uint cols, a_stride;
    uint rows;  // that there is room for, a multiple of four
};

struct HeadNormParams {
    uint heads, head_dim;  // of queries
    uint qkv_stride;
    float inverse_dim, epsilon;
};

struct MatmulParams {
    uint rows;             // of the weight, which this part holds
    uint inner, panels;    // columns of x; panels of a strip
    uint columns;          // rows of x
    uint x_stride, out_stride;
    uint accumulates, has_bias;
    // What lib/finish.glsl and lib/norm_here.glsl do.
    uint apart;  // strips between the two of a workgroup
    uint heads, kv_heads, head_dim;
    uint rope_stride, k_stride, v_stride, pages_stride;
    float inverse_inner, epsilon;
};

struct ExpertMatmulParams {
    uint rows, inner, panels;  // of an expert's weight, which this part holds
    uint x_stride, out_stride;
    uint each;          // places of a row of x
    uint tile_parts;    // workgroups of a tile for each strip
    uint first, count;  // the part has expert e as number first + e below count
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
};

struct RopeParams {
    uint heads, kv_heads, head_dim;
    uint qkv_stride, rope_stride, k_stride, v_stride, pages_stride;
};

struct AttentionParams {
    uint heads, group, head_dim;  // group: query heads of a kv head
    uint first_row, rows;         // of this block of rows
    uint own_heads, own_rows;     // of a workgroup: 16 pairs of them at most
    uint qkv_stride, k_stride, v_stride, pages_stride;
    uint most_chunks;  // that the scratch has room for, of each head
    uint window;       // positions that a row sees at most
    float scale;
};

struct MergeParams {
    uint heads, head_dim;
    uint together;           // heads that are merged together
    uint first_row;          // of this block of rows
    uint units, out_stride;  // units of `together` heads
    uint most_chunks, window;
};

struct GatherParams {
    uint cols, out_stride, x_stride;
};

struct CompactParams {
    uint words, count;  // of a cache row; of rows that move
    uint k_stride, v_stride, pages_stride;
};

struct NoiseParams {
    uint vocab, out_stride;
    uint seed_low, seed_high;
};

// Choices from rows of logits.
const uint kSlice = 4096;  // tokens of a row that a workgroup looks at
const uint kEditSlice = 2048;
const uint kDigits = 2048;  // of one level of the search for a cut
const uint kCutWords = 8;   // of a row's cut, see cut_descend.comp

struct ChoiceParams {  // rows of logits and what is done to them
    uint vocab, logits_stride;
    uint has_rules, rules_stride;  // 0: one for all rows
};

struct EditParams {
    ChoiceParams choice;
    uint seen_stride, mask_stride;  // 0: none
    uint has_map;
    uint has_rows, first_row;  // whether rows are drafted; of this block
};

struct BestParams {
    ChoiceParams choice;
    uint slices, noisy, noise_stride;
    uint is_last;  // of a choice: writes ids
};

struct CutParams {
    ChoiceParams choice;
    uint level;    // digits that are known: three of the key, then two of the id
    uint by_mass;  // the search for top-p, after that for top-k
};

struct TopKParams {
    ChoiceParams choice;
    uint slices, noisy, wanted, width;  // k, and how many are ranked
    uint has_map, ids_stride, log_probs_stride;
};

struct ProbsParams {
    ChoiceParams choice;
    uint out_stride;
};

struct BeamParams {
    uint rows, k, ids_stride, log_probs_stride;
    uint width, table_offset, next_slot;
    uint from_root, sum_values, has_selection;
};

struct ProbeParams {
    uint quads;  // of 16 bytes, of one invocation
};

#ifdef __cplusplus
}  // namespace aerie::vulkan
#endif
