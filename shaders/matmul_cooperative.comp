#version 450
// Rows of x times a quantised weight by cooperative matrices, weights on their M side. A workgroup
// has a strip of 32 output rows and kColumns rows of x, and takes the sum over k stage by stage: its
// subgroups share the matrices of a stage, however many they are.
//
// A matrix sums up one group, or a half that has a scale of its own, in exact integers; the
// invocations scale and add the groups in their order, as matmul_parts.comp does.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 128) in;
#define X_WORDS uvec2
#include "lib/product.glsl"

layout(constant_id = 0) const uint kColumns = 16u;  // a multiple of kN
layout(constant_id = 1) const uint kM = 16u;        // of a matrix: output rows, a divisor of 32
layout(constant_id = 2) const uint kN = 16u;        // rows of x
layout(constant_id = 3) const uint kK = 16u;        // elements of k, a divisor of 32
layout(constant_id = 4) const uint kTiles = 8u;     // most matrices of sums of a subgroup
const uint kInvocations = 128u, kShare = kInvocations / kStripRows;  // kShare have a row
const uint kOwnColumns = kColumns / kShare;

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)

// A pair is two words of some k of a row; a stage has kGroups groups, whose products are kSets.
const uint kPairElements = 8u, kPieces = kInHalves ? 2u : 1u;
const uint kSets = kColumns > 32u ? 2u : 4u, kGroups = kSets / kPieces;
const uint kGroupPairs = kGroupElements / kPairElements, kRowPairs = kGroups * kGroupPairs;
// Halves of weights have as many zeros between them, for matrices that are wider than one.
const uint kZeroPairs = kPieces == 2u ? kGroupPairs / 2u : 0u;
const uint kWeightPairs = kGroupPairs + kZeroPairs;
// Rows begin at different banks, aligned as loads want it.
const uint kStride = kRowPairs | 2u, kWeightStride = kGroups * kWeightPairs | 2u;
const uint kRowTiles = kStripRows / kM, kColumnTiles = kColumns / kN;
const uint kSetTiles = kRowTiles * kColumnTiles;
const uint kQuads = kGroups * kGroupQuads;           // of a row in a stage
const uint kOwnQuads = (kQuads - 1u) / kShare + 1u;  // of an invocation

// Matrices are loaded from and stored to addresses of whole 16 bytes, or rows of 8 bytes to those
// of 8: each of these arrays, and whatever is shared beside them, has whole 16 bytes.
shared uvec2 weights[kStripRows * kWeightStride];
shared uvec2 columns[kColumns * kStride];
shared uvec2 column_scales[2u * kGroups * kColumns];  // and sums of steps; of two stages in turn
shared int products[kSets * kColumns * kStripRows];

uint thread, lane, part, strip;

#define WeightTile coopmat<int8_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define ColumnTile coopmat<int8_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define SumTile coopmat<int, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

// sum += the matrix of weights at row m times the one of columns at n, from these pairs of their
// rows on.
void multiply_add(inout SumTile sum, uint m, uint n, uint weight_pair, uint pair) {
    WeightTile a;
    ColumnTile b;
    coopMatLoad(a, weights, m * kWeightStride + weight_pair, kWeightStride,
                gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(b, columns, n * kStride + pair, kStride, gl_CooperativeMatrixLayoutColumnMajor);
    sum = coopMatMulAdd(a, b, sum);
}

void store(SumTile sum, uint set, uint m, uint n) {
    coopMatStore(sum, products, (set * kColumns + n) * kStripRows + m, kStripRows,
                 gl_CooperativeMatrixLayoutColumnMajor);
}

// What this invocation reads of a stage while the one before is multiplied: codes and pairs of x that
// it moves, and the scales of its row.
const uint kScales = kPanelGroups > 1u ? 1u : kGroups;
const uint kGroupXPairs = kGroupX / 2u, kXPairs = kColumns * kGroups * kGroupXPairs;
const uint kFetches = (kXPairs + kInvocations - 1u) / kInvocations;
Codes ahead[kOwnQuads];
PanelScales ahead_scales[kScales], scales[kScales];  // of the next stage, of this one
uvec2 ahead_pairs[kFetches];

uint group_count() {
    return p.panels * kPanelGroups;
}

// Groups behind the last one are copies of it, and are not added.
uint group_at(uint stage, uint i) {
    return min(stage + i, group_count() - 1u);
}

void fetch(uint stage) {
    EACH(kFetches, f) {
        uint i = min(f * kInvocations + thread, kXPairs - 1u), item = i / kGroupXPairs;
        ahead_pairs[f] = x[column_at(item % kColumns) / 2u +
                           group_at(stage, item / kColumns) * kGroupXPairs + i % kGroupXPairs];
    }
    EACH(kScales, i) ahead_scales[i] = panel_scales(panel_of(strip, group_at(stage, i)), lane);
    EACH(kOwnQuads, i) {
        uint quad = min(i * kShare + part, kQuads - 1u);
        uint group = group_at(stage, quad / kGroupQuads);
        ahead[i] = codes_of(panel_of(strip, group),
                            group % kPanelGroups * kGroupQuads + quad % kGroupQuads, lane);
    }
}

void put_weights() {
    EACH(kOwnQuads, i) {
        uint quad = i * kShare + part;
        if (quad >= kQuads) continue;
        uint to = lane * kWeightStride + quad * (kWeightPairs / kGroupQuads);
        [[unroll]] for (uint step = 0u; step < kQuadSteps; step += 2u) {
            uint zeros = step < kQuadSteps / 2u ? 0u : kZeroPairs;
            weights[to + step / 2u + zeros] =
                uvec2(bytes_of(ahead[i], step), bytes_of(ahead[i], step + 1u));
        }
        for (uint j = 0u; j < kZeroPairs; ++j) weights[to + kGroupPairs / 2u + j] = uvec2(0u);
    }
}

void put_columns(uint scales_at) {
    EACH(kFetches, f) {
        uint i = f * kInvocations + thread, item = i / kGroupXPairs, pair = i % kGroupXPairs;
        if (i >= kXPairs) continue;
        uint c = item % kColumns, group = item / kColumns;
        if (pair == 0u)
            column_scales[scales_at + group * kColumns + c] = ahead_pairs[f];
        else
            columns[c * kStride + group * kGroupPairs + pair - 1u] = ahead_pairs[f];
    }
}

// Of columns part, part + kShare, ...: over up to kSumGroups, and over all before them.
float sums[kOwnColumns], totals[kOwnColumns];

// The sums of each group of a stage, or of its halves.
void multiply(uint stage) {
    const bool over_half = kPieces == 2u && kK > kGroupElements / 2u;
    for (uint tile = gl_SubgroupID; tile < kSets * kSetTiles; tile += gl_NumSubgroups) {
        uint set = tile / kSetTiles, m = tile % kRowTiles * kM,
             n = tile % kSetTiles / kRowTiles * kN;
        uint group = set / kPieces, piece = set % kPieces * (kGroupPairs / 2u);
        uint weight_pair = group * kWeightPairs + (over_half ? piece : 2u * piece);
        uint pair = group * kGroupPairs + (over_half ? 0u : piece);
        SumTile sum = SumTile(0);
        for (uint k = 0u; k < kGroupElements / kPieces; k += kK)
            multiply_add(sum, m, n, weight_pair + k / kPairElements, pair + k / kPairElements);
        store(sum, set, m, n);
    }
}

void add_up() {
    for (uint i = 0u; i < kOwnColumns; ++i) {
        precise float total = totals[i] + sums[i];
        totals[i] = total;
        sums[i] = 0.0;
    }
}

int product_of(uint set, uint c) {
    return products[(set * kColumns + c) * kStripRows + lane];
}

void add_groups(uint stage, uint scales_at) {
    EACH(kGroups, i) {
        bool counts = stage + i < group_count();
        PanelScales own_scales = scales[kPanelGroups > 1u ? 0u : i];
        ivec2 whole = whole_scales(own_scales, (stage + i) % kPanelGroups);
        vec2 steps = steps_of(own_scales, lane);
        ivec2 dots[kOwnColumns];
        uvec2 of_x[kOwnColumns];
        EACH(kOwnColumns, own) {
            uint c = own * kShare + part;
            dots[own] = ivec2(product_of(i * kPieces, c),
                              kInHalves ? product_of(i * kPieces + 1u, c) : 0);
            of_x[own] = column_scales[scales_at + i * kColumns + c];
        }
        EACH(kOwnColumns, own) {
            precise float sum =
                sums[own] + term_of(steps, whole, dots[own], of_x[own].x, of_x[own].y);
            sums[own] = counts ? sum : sums[own];
        }
    }
}

void main() {
    if (!begin_columns(kColumns)) return;
    thread = gl_LocalInvocationID.x;
    lane = thread % kStripRows;
    part = thread / kStripRows;
    strip = weight_strip(gl_WorkGroupID.y) * p.panels * kPanelQuads;
    for (uint i = 0u; i < kOwnColumns; ++i) sums[i] = totals[i] = 0.0;
    fetch(0u);
    uint scales_at = 0u;
    for (uint stage = 0u; stage < group_count(); stage += kGroups) {
        put_weights();
        put_columns(scales_at);
        EACH(kScales, i) scales[i] = ahead_scales[i];
        barrier();
        fetch(stage + kGroups);
        multiply(stage);
        barrier();
        if (stage % kSumGroups == 0u) add_up();
        add_groups(stage, scales_at);
        scales_at = kGroups * kColumns - scales_at;
    }
    add_up();
    uint row = gl_WorkGroupID.y * kStripRows + lane;
    EACH(kOwnColumns, i) write_sum(row, i * kShare + part, totals[i]);
}
