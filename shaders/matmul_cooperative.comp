#version 450
// Rows of x times a weight by cooperative matrices, weights on their M side. A workgroup has a
// strip of 32 output rows and kColumns rows of x, and takes the sum over k stage by stage: its
// subgroups share the matrices of a stage, however many they are.
//
// Quantised: a matrix sums up one group, or a half that has a scale of its own, in exact integers;
// the invocations scale and add the groups in their order, as matmul.comp does. F16: the sums over all of k stay in the matrices. x is cut
// into two f16 that keep 21 of its bits, each row brought to the middle of their range by a power
// of two, so that no rounding mode and no denormal matters. The order of the sum depends on the
// shape of the matrices and on nothing else.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#include "lib/product.glsl"

layout(constant_id = 0) const uint kColumns = 16u;  // a multiple of kN
layout(constant_id = 1) const uint kM = 16u;        // of a matrix: output rows, a divisor of 32
layout(constant_id = 2) const uint kN = 16u;        // rows of x
layout(constant_id = 3) const uint kK = 16u;        // elements of k, a divisor of 32
layout(constant_id = 4) const uint kTiles = 8u;     // most matrices of sums of a subgroup
const uint kInvocations = 128u, kShare = kInvocations / kStripRows;  // kShare have a row
const uint kOwnColumns = kColumns / kShare;
layout(local_size_x = 128) in;

// A pair is two words of some k of a row; a stage has kGroups groups, whose products are kSets.
#if defined(QUANTISED)
#define ELEMENT int8_t
#define SUM int
const uint kParts = 1u, kPairElements = 8u, kPieces = kInHalves ? 2u : 1u;
const uint kSets = kColumns > 32u ? 2u : 4u, kGroups = kSets / kPieces;
#else
#define ELEMENT float16_t
#define SUM float
const uint kParts = 2u, kPairElements = 4u, kPieces = 1u, kSets = 1u;
const uint kGroups = kColumns > 32u ? 8u : 16u;
#endif
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
shared uvec2 columns[kParts * kColumns * kStride];
shared SUM products[kSets * kColumns * kStripRows];

uint thread, lane, part, strip;

#define WeightTile coopmat<ELEMENT, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define ColumnTile coopmat<ELEMENT, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define SumTile coopmat<SUM, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

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

// The quads of a stage that this invocation moves, while the stage before is multiplied.
Codes ahead[kOwnQuads];

uint group_count() {
    return p.panels * kPanelGroups;
}

void fetch_weights(uint stage) {
    for (uint i = 0u; i < kOwnQuads; ++i) {
        uint quad = i * kShare + part, group = stage + quad / kGroupQuads;
        uint in_panel = group % kPanelGroups * kGroupQuads + quad % kGroupQuads;
        ahead[i].low = uvec4(0u);
        if (quad < kQuads && group < group_count())
            ahead[i] = codes_of(panel_of(strip, group), in_panel, lane);
    }
}

void put_weights() {
    for (uint i = 0u; i < kOwnQuads; ++i) {
        uint quad = i * kShare + part;
        if (quad >= kQuads) break;
        uint to = lane * kWeightStride + quad * (kWeightPairs / kGroupQuads);
        [[unroll]] for (uint step = 0u; step < kQuadSteps; step += 2u) {
            uint zeros = step < kQuadSteps / 2u ? 0u : kZeroPairs;
            weights[to + step / 2u + zeros] =
                uvec2(bytes_of(ahead[i], step), bytes_of(ahead[i], step + 1u));
        }
        for (uint j = 0u; j < kZeroPairs; ++j) weights[to + kGroupPairs / 2u + j] = uvec2(0u);
    }
}

#if defined(QUANTISED)
void put_columns(uint stage) {
    for (uint i = thread; i < kColumns * kRowPairs; i += kInvocations) {
        uint c = i / kRowPairs, pair = i % kRowPairs, group = stage + pair / kGroupPairs;
        uint from = column_at(c) + group * kGroupX + kStepWord + pair % kGroupPairs * 2u;
        uvec2 words = uvec2(0u);
        if (group < group_count()) words = uvec2(x[from], x[from + 1u]);
        columns[c * kStride + pair] = words;
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

void add_groups(uint stage) {
    for (uint i = 0u; i < min(kGroups, group_count() - stage); ++i) {
        uint group = stage + i;
        PanelScales scales = panel_scales(panel_of(strip, group), lane);
        ivec2 whole = whole_scales(scales, group % kPanelGroups);
        vec2 steps = steps_of(scales, lane);
        for (uint own = 0u; own < kOwnColumns; ++own) {
            uint c = own * kShare + part, from = column_at(c) + group * kGroupX;
            ivec2 dots = ivec2(product_of(i * kPieces, c), 0);
            if (kInHalves) dots.y = product_of(i * kPieces + 1u, c);
            precise float sum =
                sums[own] + term_of(steps, whole, dots, x[from], kUsesSums ? x[from + 1u] : 0u);
            sums[own] = sum;
        }
    }
}
#else
shared uint peaks[kColumns];  // the largest magnitude of a row, as an integer

// The power of two that brings the row's largest element to 2^13 .. 2^14, as far as there is one.
uint scale_exponent(uint c) {
    return clamp(267u - min(peaks[c] >> 23, 254u), 1u, 253u);
}

// f16 bits of x without the bits that do not fit; 0 below f16's normal range.
uint cut(float value) {
    uint word = floatBitsToUint(value), magnitude = word & 0x7fffffffu;
    return (word >> 16 & 0x8000u) |
           (magnitude < 0x38800000u ? 0u : (magnitude - 0x38000000u) >> 13);
}

void put_columns(uint stage) {
    for (uint i = thread; i < kColumns * kRowPairs; i += kInvocations) {
        uint c = i / kRowPairs, pair = i % kRowPairs,
             k = stage * kGroupElements + pair * kPairElements;
        float scale = uintBitsToFloat(scale_exponent(c) << 23);
        uint high[4], low[4];
        for (uint j = 0u; j < 4u; ++j) {
            precise float value = 0.0;
            if (k + j < p.inner) value = uintBitsToFloat(x[column_at(c) + k + j]) * scale;
            high[j] = cut(value);
            precise float rest = value - half_value(high[j]);
            low[j] = cut(rest);
        }
        columns[c * kStride + pair] = uvec2(high[0] | high[1] << 16, high[2] | high[3] << 16);
        columns[(kColumns + c) * kStride + pair] =
            uvec2(low[0] | low[1] << 16, low[2] | low[3] << 16);
    }
}

void find_peaks() {
    if (thread < kColumns) peaks[thread] = 0u;
    barrier();
    for (uint c = 0u; c < kColumns; ++c) {
        uint largest = 0u;
        for (uint k = thread; k < p.inner; k += kInvocations)
            largest = max(largest, x[column_at(c) + k] & 0x7fffffffu);
        atomicMax(peaks[c], largest);
    }
    barrier();
}

SumTile sums[kTiles];  // matrix i of subgroup s of S is the one of tile s + i S

// A stage of every matrix of sums. What lies beyond the end of k is not added.
void multiply(uint stage) {
    uint count = min(kGroups * kGroupElements, p.inner - stage * kGroupElements);
    for (uint i = 0u; i < kTiles; ++i) {
        uint tile = gl_SubgroupID + i * gl_NumSubgroups;
        if (tile >= kSetTiles) break;
        uint m = tile % kRowTiles * kM, n = tile / kRowTiles * kN;
        for (uint k = 0u; k < count; k += kK) {
            multiply_add(sums[i], m, kColumns + n, k / kPairElements, k / kPairElements);
            multiply_add(sums[i], m, n, k / kPairElements, k / kPairElements);
        }
    }
}

void store_all() {
    for (uint i = 0u; i < kTiles; ++i) {
        uint tile = gl_SubgroupID + i * gl_NumSubgroups;
        if (tile < kSetTiles) store(sums[i], 0u, tile % kRowTiles * kM, tile / kRowTiles * kN);
    }
}

// A sum without its row's power of two; no number where the row holds what is none.
float scaled_back(uint c) {
    uint word = peaks[c] >= 0x7f800000u ? 0x7fc00000u : (254u - scale_exponent(c)) << 23;
    precise float sum = products[c * kStripRows + lane] * uintBitsToFloat(word);
    return sum;
}
#endif

void main() {
    if (!begin_columns(kColumns)) return;
    thread = gl_LocalInvocationID.x;
    lane = thread % kStripRows;
    part = thread / kStripRows;
    strip = weight_strip() * p.panels * kPanelQuads;
#if defined(QUANTISED)
    for (uint i = 0u; i < kOwnColumns; ++i) sums[i] = totals[i] = 0.0;
#else
    for (uint i = 0u; i < kTiles; ++i) sums[i] = SumTile(0.0);
    find_peaks();
#endif
    fetch_weights(0u);
    for (uint stage = 0u; stage < group_count(); stage += kGroups) {
        put_weights();
        put_columns(stage);
        fetch_weights(stage + kGroups);
        barrier();
        multiply(stage);
        barrier();
#if defined(QUANTISED)
        if (stage % kSumGroups == 0u) add_up();
        add_groups(stage);
#endif
    }
#if defined(QUANTISED)
    add_up();
#else
    store_all();
    barrier();
#endif
    uint row = weight_row(lane);
    for (uint i = 0u; i < kOwnColumns; ++i) {
        uint c = i * kShare + part;
#if defined(QUANTISED)
        write_sum(row, c, totals[i]);
#else
        write_sum(row, c, scaled_back(c));
#endif
    }
}
