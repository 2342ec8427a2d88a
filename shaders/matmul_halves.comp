#version 450
// x times a weight of f16 by cooperative matrices, with weights on their M side. A workgroup has
// kStrips strips of 32 output rows and kColumns rows of x, which are pairs of f16
// (lib/halves.glsl). Weights are loaded from memory into matrices; x, which is the same for all of
// them, goes through shared memory. Both are loaded a stage of kSteps panels ahead. ROW: x is one
// row of floats, and is split here.
//
// Every 128 invocations have one of kSplit consecutive ranges of K (split-K), so that few strips
// keep the memory busy. The partial sums of a range stay in matrices, and are added in ascending
// order of K. So the order of a sum depends on the shape of the matrices and on kSplit, and on
// nothing else.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 128, local_size_y_id = 9) in;
#if defined(ROW)
#define X_WORDS float
#else
#define X_WORDS uvec4
#endif
#define OWN_RESULTS
#include "lib/product.glsl"
#include "lib/halves.glsl"
#include "lib/result.glsl"
#if defined(ROW)
#include "lib/row_here.glsl"
#endif

layout(constant_id = 0) const uint kColumns = 16u;  // 8, 16, 32 or 64, a multiple of kN
layout(constant_id = 1) const uint kM = 16u;        // output rows of a matrix, a divisor of 32
layout(constant_id = 2) const uint kN = 16u;        // rows of x of a matrix
layout(constant_id = 3) const uint kK = 16u;        // elements of K of a matrix, a divisor of 16
layout(constant_id = 5) const uint kSteps = 4u;     // panels of a stage: 1, 2 or 4
layout(constant_id = 8) const uint kOwnTiles = 1u;  // most tiles of rows per subgroup
layout(constant_id = 9) const uint kSplit = 1u;     // ranges of K: 1 or 2

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)

const uint kInvocations = 128u, kStrips = 2u, kRowTiles = kStrips * kStripRows / kM;
const uint kColumnTiles = kColumns / kN, kPieces = kHalfPanel / kK;
const uint kRound = 16u;  // a range of K has a multiple of so many panels, whatever kColumns is
// Columns that are kept in shared memory. A single row is the first column; the other columns of
// its tile hold whatever lies behind it, and their results are not written.
#if defined(ROW)
const uint kKept = 1u;
#else
const uint kKept = kColumns;
#endif
// An item is the high or the low part of a column in a panel; items begin at different banks.
const uint kItems = kSteps * 2u * kKept, kItemQuads = kRowQuads + 1u;
const uint kQuads = kItems * kRowQuads, kFetches = (kQuads + kInvocations - 1u) / kInvocations;
const uint kStageQuads = kItems * kItemQuads, kPartQuads = 2u * kStageQuads;
const uint kSumQuads = kStrips * kStripRows * kColumns / 4u;
const uint kStagedQuads = kSplit * kPartQuads + (kColumns - kKept) * kItemQuads;
// Two stages for each range of K; later the partial sums of one range.
shared uvec4 staged[kStagedQuads > kSumQuads ? kStagedQuads : kSumQuads];

#define WeightTile coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define ColumnTile coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define SumTile coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

// Weights are loaded ahead into two places in turn and never copied: Mesa 25.0 takes a matrix that
// is copied and then loaded anew for the new one in both places.
const uint kWeights = kSteps * kPieces * kOwnTiles;
WeightTile weights[2u * kWeights];
SumTile sums[kOwnTiles * kColumnTiles];
#if defined(ROW)
float elements[2], norm_weights[2];
#else
uvec4 quads[4];
uint x_at;
#endif

uint thread;
uint part;                // the range of K of this subgroup
uint part_panels;         // panels per range
uint tile_at[kRowTiles];  // where the weights of this subgroup's tiles begin

uint own_strip(uint which) {
    return kFinish == kAsItIs ? gl_WorkGroupID.y * kStrips + which : strip_number(which);
}

uint row_tile(uint i) {
    uint together = gl_NumSubgroups / kSplit;
    return gl_SubgroupID % together + i * together;
}

#if defined(ROW)
// The first kPairs invocations have two elements of a stage each: a word of the high part and one
// of the low part.
const uint kPairs = kSteps * kHalfPanel / 2u, kQuadPairs = 4u;

void fetch_x(uint first) {
    uint k = first * kHalfPanel + 2u * min(thread, kPairs - 1u);
    EACH(2u, j) {
        uint held = min(k + j, p.inner - 1u);
        float element = x[at[1] + held];
        elements[j] = k + j < p.inner ? element : 0.0;
#if defined(NORMED)
        norm_weights[j] = norm_weight[at[9] + held];
#endif
    }
}

void put_x(uint to) {
    uvec2 words = uvec2(0u);
    EACH(2u, j) {
        precise float scaled = value_of(elements[j], norm_weights[j]) * row_scale;
        words |= cut_in_two(scaled) << (16u * j);
    }
    uint quad = thread / kQuadPairs, at_high = to + quad / kRowQuads * 2u * kItemQuads + quad % kRowQuads;
    if (thread >= kPairs) return;
    staged[at_high][thread % kQuadPairs] = words.x;
    staged[at_high + kItemQuads][thread % kQuadPairs] = words.y;
}

uint peak_of(uint c) {
    return peak_of_row[0];
}
#else
void fetch_x(uint first) {
    EACH(kFetches, f) {
        uint item = min(f * kInvocations + thread, kQuads - 1u) / kRowQuads, piece = item / kColumns;
        uint panel = first + piece / 2u, held = min(panel, p.panels - 1u);
        uvec4 quad = x[x_at + half_place(held, piece % 2u, column_row(item % kColumns), p.x_stride) +
                       thread % kRowQuads];
        quads[f] = panel < p.panels ? quad : uvec4(0u);
    }
}

void put_x(uint to) {
    EACH(kFetches, f) {
        uint i = f * kInvocations + thread;
        if (i < kQuads) staged[to + i / kRowQuads * kItemQuads + i % kRowQuads] = quads[f];
    }
}

uint peak_of(uint c) {
    uint row = column_row(c);
    return x[at[1] / 4u + row / 4u][row % 4u];
}
#endif

// Loads a stage: of each range, the panels from `first` on. Beyond the last panel weights are
// copies, and x is zeros.
void fetch(uint place, uint first) {
    uint panel = part * part_panels + first;
    fetch_x(gl_LocalInvocationID.y * part_panels + first);
    EACH(kSteps, step) EACH(kPieces, piece) EACH(kOwnTiles, i)
        coopMatLoad(weights[place * kWeights + (step * kPieces + piece) * kOwnTiles + i], weight,
                    tile_at[i] + min(panel + step, p.panels - 1u) * kPanelQuads + piece, kGroupQuads,
                    gl_CooperativeMatrixLayoutRowMajor);
}

// Multiplies a stage: the low parts of x first, then the high ones.
void multiply(uint place) {
    EACH(kSteps, step) EACH(kPieces, piece) EACH(kColumnTiles, n) {
        uint from = part * kPartQuads + place * kStageQuads +
                    step * 2u * kKept * kItemQuads + n * kN * kItemQuads + piece;
        ColumnTile high, low;
        coopMatLoad(high, staged, from, kItemQuads, gl_CooperativeMatrixLayoutColumnMajor);
        coopMatLoad(low, staged, from + kKept * kItemQuads, kItemQuads,
                    gl_CooperativeMatrixLayoutColumnMajor);
        EACH(kOwnTiles, i) {
            uint tile = n * kOwnTiles + i;
            uint w = place * kWeights + (step * kPieces + piece) * kOwnTiles + i;
            sums[tile] = coopMatMulAdd(weights[w], low, sums[tile]);
            sums[tile] = coopMatMulAdd(weights[w], high, sums[tile]);
        }
    }
}

// The quad of `staged` where a tile of this subgroup is stored, column by column.
uint sums_at(uint i, uint n) {
    return (n * kN * kStrips * kStripRows + row_tile(i) * kM) / 4u;
}

void put_sums() {
    EACH(kOwnTiles, i)
        if (row_tile(i) < kRowTiles)
            EACH(kColumnTiles, n)
                coopMatStore(sums[n * kOwnTiles + i], staged, sums_at(i, n), kStrips * kStripRows / 4u,
                             gl_CooperativeMatrixLayoutColumnMajor);
}

void add_sums() {
    EACH(kOwnTiles, i)
        if (row_tile(i) < kRowTiles)
            EACH(kColumnTiles, n) {
                SumTile more;
                coopMatLoad(more, staged, sums_at(i, n), kStrips * kStripRows / 4u,
                            gl_CooperativeMatrixLayoutColumnMajor);
                uint tile = n * kOwnTiles + i;
                for (int e = 0; e < more.length(); ++e) {
                    precise float total = sums[tile][e] + more[e];
                    sums[tile][e] = total;
                }
            }
}

void write_sums() {
    const uint row_quads = kStrips * kStripRows / 4u;
    for (uint i = gl_LocalInvocationIndex; i < kColumns * row_quads; i += kInvocations * kSplit) {
        uint c = i / row_quads, lane = i % row_quads * 4u;
        uint row = own_strip(lane / kStripRows) * kStripRows + lane % kStripRows;
        if (!has_column(c)) continue;
        uint peak = peak_of(c);
        vec4 held, more;
        ask_for(held, more, row, c);
        uint unscale = unscale_word(peak);
        EACH(4u, j) {
            precise float sum = uintBitsToFloat(staged[i][j]) * uintBitsToFloat(unscale);
            if (kFinish == kAsItIs)
                write_sum(row + j, c, sum, held[j], more[j]);
            else
                staged[i][j] = floatBitsToUint(with_bias(sum, more[j]));
        }
    }
}

#if !defined(EXPERTS)
float result(uint c, uint lane) {
    return uintBitsToFloat(staged[(c * kStrips * kStripRows + lane) / 4u][lane % 4u]);
}
#endif

void main() {
    if (!begin_columns(kColumns)) return;
    thread = gl_LocalInvocationID.x;
    part = gl_SubgroupID / (gl_NumSubgroups / kSplit);
    part_panels = (p.panels + kRound * kSplit - 1u) / (kRound * kSplit) * kRound;
#if !defined(ROW)
    x_at = at[1] / 4u + p.x_stride / 4u;
#endif
    EACH(kOwnTiles, i) {
        uint m = min(row_tile(i), kRowTiles - 1u) * kM;
        uint strip = min(own_strip(m / kStripRows), (p.rows - 1u) / kStripRows);
        tile_at[i] = weight_strip(strip) * p.panels * kPanelQuads + m % kStripRows * kGroupQuads;
    }
    EACH(kOwnTiles * kColumnTiles, i) sums[i] = SumTile(0.0);
    fetch(0u, 0u);
#if defined(ROW)
    begin_row();
#endif
    for (uint first = 0u; first < part_panels; first += 2u * kSteps)
        EACH(2u, place) {
            put_x(gl_LocalInvocationID.y * kPartQuads + place * kStageQuads);
            barrier();
            fetch(1u - place, first + (place + 1u) * kSteps);
            multiply(place);
        }
    [[unroll]] for (uint other = 1u; other < kSplit; ++other) {
        barrier();
        if (part == other) put_sums();
        barrier();
        if (part == 0u) add_sums();
    }
    barrier();
    if (part == 0u) put_sums();
    barrier();
    write_sums();
    finish_results(kColumns);
}
