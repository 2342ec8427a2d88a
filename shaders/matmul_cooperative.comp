#version 450
// x times a quantised weight by cooperative matrices of int8, with weights on their M side. A
// workgroup has a strip of 32 output rows and kColumns rows of x, and goes over K stage by stage; a
// stage is loaded while the one before is multiplied.
//
// A matrix holds the dot products of one group, or of a half that has a scale of its own, as exact
// integers. Scales are loaded into matrices of the same shape, so that each element is scaled and
// added in place, in the order of matmul_parts.comp.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 128) in;
#define X_WORDS uvec2
#include "lib/product.glsl"

layout(constant_id = 0) const uint kColumns = 16u;     // a multiple of kN
layout(constant_id = 1) const uint kM = 16u;           // output rows of a matrix, a divisor of 32
layout(constant_id = 2) const uint kN = 16u;           // rows of x of a matrix
layout(constant_id = 3) const uint kK = 16u;           // elements of K of a matrix, a divisor of 32
layout(constant_id = 4) const uint kOwnRows = 1u;      // tiles of a subgroup, down
layout(constant_id = 5) const uint kOwnColumns = 4u;   // and across

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)

const uint kInvocations = 128u, kShare = kInvocations / kStripRows;  // kShare invocations have a
                                                                     // row
const uint kRowTiles = kStripRows / kM, kColumnTiles = kColumns / kN;
// A pair is two words, eight elements of a row; a stage has kGroups groups.
const uint kPairElements = 8u, kPieces = kInHalves ? 2u : 1u;
const uint kGroups = kColumns > 32u ? 2u : 4u;
const uint kGroupPairs = kGroupElements / kPairElements, kRowPairs = kGroups * kGroupPairs;
// If halves of a group have scales of their own, so many pairs of zeros lie between the halves of
// the weights, for matrices that are wider than one half.
const uint kZeroPairs = kPieces == 2u ? kGroupPairs / 2u : 0u;
const uint kWeightPairs = kGroupPairs + kZeroPairs;
// Rows begin at different banks, and as aligned as loads of matrices want it.
const uint kStride = kRowPairs | 2u, kWeightStride = kGroups * kWeightPairs | 2u;
const uint kQuads = kGroups * kGroupQuads;           // quads of a row in a stage
const uint kOwnQuads = (kQuads - 1u) / kShare + 1u;  // quads per invocation

// The arrays have room for two stages in turn. Matrices are loaded from and stored to addresses of
// whole 16 bytes, or of 8 if their rows have 8 bytes. So each of these arrays, and whatever is
// shared beside them, has a multiple of 16 bytes.
const uint kStageWeights = kStripRows * kWeightStride, kStageColumns = kColumns * kStride;
const uint kStageRows = kGroups * kStripRows, kStageScales = kGroups * kColumns;
const uint kMinRows = kHasLeast ? 2u * kStageRows : 4u;
const uint kWholeRows = kHasWhole ? 2u * kStageRows : 4u;
shared uvec2 weights[2u * kStageWeights];
shared uvec2 columns[2u * kStageColumns];  // later the results
shared float row_steps[2u * kStageRows], row_leasts[kMinRows];
shared int row_wholes[kWholeRows], row_seconds[kWholeRows];
shared float column_scales[2u * kStageScales];
shared int column_sums[kUsesSums ? 2u * kPieces * kStageScales : 4u];

#define WeightTile coopmat<int8_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define ColumnTile coopmat<int8_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define DotTile coopmat<int, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>
#define SumTile coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>
// Matrices of which all columns are the same, or all rows.
#define OF_ROWS 0u, gl_CooperativeMatrixLayoutColumnMajor
#define OF_COLUMNS 0u, gl_CooperativeMatrixLayoutRowMajor

uint thread, lane, part, strip, place;  // place: 0 or 1, where the stage lies

// The data of a stage that this invocation loads while the stage before is multiplied: codes, the
// scales of its row in one of the groups, and groups of x.
const uint kGroupXPairs = kGroupX / 2u, kItems = kColumns * kGroups;
const uint kFetches = (kItems + kInvocations - 1u) / kInvocations;
Codes ahead[kOwnQuads];
PanelScales ahead_scales;
uvec2 ahead_pairs[kFetches * kGroupXPairs];

uint group_count() {
    return p.panels * kPanelGroups;
}

// Groups beyond the last one are copies of it, and are not added.
uint group_at(uint stage, uint i) {
    return min(stage + i, group_count() - 1u);
}

void fetch(uint stage) {
    EACH(kFetches, f) {
        uint item = min(f * kInvocations + thread, kItems - 1u);
        uint from = column_at(item / kGroups) / 2u + group_at(stage, item % kGroups) * kGroupXPairs;
        EACH(kGroupXPairs, i) ahead_pairs[f * kGroupXPairs + i] = x[from + i];
    }
    ahead_scales = panel_scales(panel_of(strip, group_at(stage, part % kGroups)), lane);
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
        uint to = place * kStageWeights + lane * kWeightStride + quad * (kWeightPairs / kGroupQuads);
        [[unroll]] for (uint step = 0u; step < kQuadSteps; step += 2u) {
            uint zeros = step < kQuadSteps / 2u ? 0u : kZeroPairs;
            weights[to + step / 2u + zeros] =
                uvec2(bytes_of(ahead[i], step), bytes_of(ahead[i], step + 1u));
        }
        for (uint j = 0u; j < kZeroPairs; ++j) weights[to + kGroupPairs / 2u + j] = uvec2(0u);
    }
}

void put_row_scales(uint stage) {
    if (part >= kGroups) return;
    uint to = place * kStageRows + part * kStripRows + lane;
    vec2 steps = scale_and_min(ahead_scales, lane);
    ivec2 whole = whole_scales(ahead_scales, group_at(stage, part) % kPanelGroups);
    row_steps[to] = steps.x;
    if (kHasLeast) row_leasts[to] = steps.y;
    if (kHasWhole) {
        row_wholes[to] = whole.x;
        row_seconds[to] = whole.y;
    }
}

// The initial value of dot products, which takes the offset of the codes away again; or, if there
// are mins, the sum of the quantised x.
void put_column_sums(uint sums, uint group, uint c) {
    int first = int(sums << 16) >> 16, second = int(sums) >> 16, factor = kHasLeast ? 1 : -int(kOffset);
    uint to = (place * kGroups + group) * kPieces * kColumns + c;
    column_sums[to] = (kInHalves ? first : first + second) * factor;
    if (kInHalves) column_sums[to + kColumns] = second * factor;
}

void put_columns() {
    EACH(kFetches, f) {
        uint item = f * kInvocations + thread, c = item / kGroups, group = item % kGroups;
        if (item >= kItems) continue;
        uvec2 scales = ahead_pairs[f * kGroupXPairs];
        column_scales[(place * kGroups + group) * kColumns + c] = uintBitsToFloat(scales.x);
        if (kUsesSums) put_column_sums(scales.y, group, c);
        uint to = place * kStageColumns + c * kStride + group * kGroupPairs;
        EACH(kGroupPairs, i) columns[to + i] = ahead_pairs[f * kGroupXPairs + 1u + i];
    }
}

// The tiles of this subgroup. The constants are for the widest subgroups that the driver may
// choose; of narrower ones, some have no tiles.
const uint kDown = kRowTiles / kOwnRows, kAcross = kColumnTiles / kOwnColumns;

bool has_tiles() {
    return gl_SubgroupID < kDown * kAcross;
}

uint row_of_tile(uint i) {
    return (gl_SubgroupID % kDown + i * kDown) * kM;
}

uint column_of_tile(uint i) {
    return (gl_SubgroupID / kDown + i * kAcross) * kN;
}

// sums: over the present part of up to kSumGroups groups; totals: over the parts before it.
SumTile sums[kOwnRows * kOwnColumns], totals[kOwnRows * kOwnColumns];

void add_up() {
    EACH(kOwnRows * kOwnColumns, tile) {
        for (int e = 0; e < sums[tile].length(); ++e) {
            precise float total = totals[tile][e] + sums[tile][e];
            totals[tile][e] = total;
        }
        sums[tile] = SumTile(0.0);
    }
}

// The scales and mins of a group, for a tile of rows.
struct RowScales {
    SumTile steps, leasts;
    DotTile wholes, seconds;
};

RowScales row_scales(uint group, uint m) {
    RowScales scales;
    uint from = place * kStageRows + group * kStripRows + m;
    coopMatLoad(scales.steps, row_steps, from, OF_ROWS);
    if (kHasLeast) coopMatLoad(scales.leasts, row_leasts, from, OF_ROWS);
    if (kHasWhole) {
        coopMatLoad(scales.wholes, row_wholes, from, OF_ROWS);
        coopMatLoad(scales.seconds, row_seconds, from, OF_ROWS);
    }
    return scales;
}

// `begin` plus the dot products with the codes of a group, or of one of its halves.
DotTile dots_of(uint group, uint piece, uint m, uint n, DotTile begin) {
    const bool over_half = kPieces == 2u && kK > kGroupElements / 2u;
    uint later = piece * (kGroupPairs / 2u);
    uint weight = place * kStageWeights + m * kWeightStride + group * kWeightPairs +
                  (over_half ? later : 2u * later);
    uint column = place * kStageColumns + n * kStride + group * kGroupPairs + (over_half ? 0u : later);
    DotTile dots = begin;
    [[unroll]] for (uint k = 0u; k < kGroupElements / kPieces; k += kK) {
        WeightTile a;
        ColumnTile b;
        coopMatLoad(a, weights, weight + k / kPairElements, kWeightStride,
                    gl_CooperativeMatrixLayoutRowMajor);
        coopMatLoad(b, columns, column + k / kPairElements, kStride,
                    gl_CooperativeMatrixLayoutColumnMajor);
        dots = coopMatMulAdd(a, b, dots);
    }
    return dots;
}

DotTile sums_of_columns(uint group, uint piece, uint n) {
    DotTile tile;
    coopMatLoad(tile, column_sums,
                ((place * kGroups + group) * kPieces + piece) * kColumns + n, OF_COLUMNS);
    return tile;
}

// Adds a group's term to each element, as term_of() of lib/product.glsl computes it.
void add_group(uint tile, uint group, uint m, uint n, RowScales of_rows) {
    SumTile scales;
    coopMatLoad(scales, column_scales, place * kStageScales + group * kColumns + n, OF_COLUMNS);
    DotTile column_sum = DotTile(0);
    if (kHasLeast) column_sum = sums_of_columns(group, 0u, n);
    DotTile dots[2];
    EACH(kPieces, piece)
        dots[piece] = dots_of(group, piece, m, n,
                              kOffset > 0u ? sums_of_columns(group, piece, n) : DotTile(0));
    if (kHasWhole)
        for (int e = 0; e < dots[0].length(); ++e) {
            dots[0][e] *= of_rows.wholes[e];
            if (kInHalves) dots[0][e] += dots[1][e] * of_rows.seconds[e];
            if (kHasLeast) column_sum[e] *= of_rows.seconds[e];
        }
    SumTile products = SumTile(dots[0]), less = SumTile(column_sum);
    for (int e = 0; e < products.length(); ++e) {
        precise float scale = of_rows.steps[e] * scales[e];
        precise float term = products[e] * scale;
        if (kHasLeast) {
            precise float least = of_rows.leasts[e] * scales[e];
            precise float taken = less[e] * least;
            term = term - taken;
        }
        precise float sum = sums[tile][e] + term;
        sums[tile][e] = sum;
    }
}

void multiply(uint stage) {
    EACH(kGroups, group) {
        if (stage + group >= group_count()) return;
        EACH(kOwnRows, r) {
            uint m = row_of_tile(r);
            RowScales of_rows = row_scales(group, m);
            EACH(kOwnColumns, c)
                add_group(r * kOwnColumns + c, group, m, column_of_tile(c), of_rows);
        }
    }
}

// Stores the results column by column, where x was.
void store_totals() {
    EACH(kOwnRows, r) EACH(kOwnColumns, c)
        coopMatStore(totals[r * kOwnColumns + c], columns,
                     (column_of_tile(c) * kStripRows + row_of_tile(r)) / 2u, kStripRows / 2u,
                     gl_CooperativeMatrixLayoutColumnMajor);
}

void main() {
    if (!begin_columns(kColumns)) return;
    thread = gl_LocalInvocationID.x;
    lane = thread % kStripRows;
    part = thread / kStripRows;
    strip = weight_strip(gl_WorkGroupID.y) * p.panels * kPanelQuads;
    EACH(kOwnRows * kOwnColumns, tile) sums[tile] = totals[tile] = SumTile(0.0);
    fetch(0u);
    place = 0u;
    for (uint stage = 0u; stage < group_count(); stage += kGroups) {
        put_weights();
        put_row_scales(stage);
        put_columns();
        barrier();
        fetch(stage + kGroups);
        if (stage % kSumGroups == 0u) add_up();
        if (has_tiles()) multiply(stage);
        place = 1u - place;
    }
    add_up();
    barrier();
    if (has_tiles()) store_totals();
    barrier();
    uint row = gl_WorkGroupID.y * kStripRows + lane;
    for (uint c = part; c < kColumns; c += kShare)
        write_sum(row, c, uintBitsToFloat(columns[(c * kStripRows + lane) / 2u][lane % 2u]));
}
