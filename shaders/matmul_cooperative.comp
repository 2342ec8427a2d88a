#version 450
// Rows of x times a weight by cooperative matrices, weights on their M side. A workgroup has a
// strip of 32 output rows and kColumns rows of x, and takes the sum over k stage by stage: its
// subgroups share the matrices of a stage, however many they are.
//
// Quantised: a matrix sums up one group in exact integers; the invocations scale and add the groups
// in their order, as matmul.comp does. F16: the sums over all of k stay in the matrices. x is cut
// into two f16 that keep 21 of its bits, each row brought to the middle of their range by a power
// of two, so that no rounding mode and no denormal matters. The order of the sum depends on the
// shape of the matrices and on nothing else.
#extension GL_GOOGLE_include_directive : require
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

// A pair is two words of some k of a row; a stage has kPanels panels.
#if defined(QUANTISED)
#define ELEMENT int8_t
#define SUM int
const uint kParts = 1u, kPairElements = 8u, kPanels = kColumns > 32u ? 2u : 4u, kSets = kPanels;
#else
#define ELEMENT float16_t
#define SUM float
const uint kParts = 2u, kPairElements = 4u, kPanels = kColumns > 32u ? 8u : 16u, kSets = 1u;
#endif
const uint kPanelPairs = kPanelElements / kPairElements, kRowPairs = kPanels * kPanelPairs;
const uint kStride = kRowPairs + 2u;  // rows begin at different banks, aligned as loads want it
const uint kRowTiles = kStripRows / kM, kColumnTiles = kColumns / kN;
const uint kSetTiles = kRowTiles * kColumnTiles;
const uint kQuads = kPanels * kPanelQuads;           // of a row in a stage
const uint kOwnQuads = (kQuads - 1u) / kShare + 1u;  // of an invocation

// Matrices are loaded from and stored to addresses of whole 16 bytes, or rows of 8 bytes to those
// of 8: each of these arrays, and whatever is shared beside them, has whole 16 bytes.
shared uvec2 weights[kStripRows * kStride];
shared uvec2 columns[kParts * kColumns * kStride];
shared SUM products[kSets * kColumns * kStripRows];

uint thread, lane, part, first_panel;

#define WeightTile coopmat<ELEMENT, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define ColumnTile coopmat<ELEMENT, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define SumTile coopmat<SUM, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

// sum += the matrix of weights at row m times the one of columns at n, from `pair` on in their
// rows.
void multiply_add(inout SumTile sum, uint m, uint n, uint pair) {
    WeightTile a;
    ColumnTile b;
    coopMatLoad(a, weights, m * kStride + pair, kStride, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(b, columns, n * kStride + pair, kStride, gl_CooperativeMatrixLayoutColumnMajor);
    sum = coopMatMulAdd(a, b, sum);
}

void store(SumTile sum, uint set, uint m, uint n) {
    coopMatStore(sum, products, (set * kColumns + n) * kStripRows + m, kStripRows,
                 gl_CooperativeMatrixLayoutColumnMajor);
}

// The quads of a stage that this invocation moves, while the stage before is multiplied.
uvec4 ahead[kOwnQuads];

void fetch_weights(uint stage) {
    for (uint i = 0u; i < kOwnQuads; ++i) {
        uint quad = i * kShare + part;
        uint panel = stage + quad / kPanelQuads, in_panel = quad % kPanelQuads;
        ahead[i] = uvec4(0u);
        if (quad < kQuads && panel < p.panels)
            ahead[i] = weight[first_panel + panel * panel_quads() + in_panel * kStripRows + lane];
    }
}

void put_weights() {
    for (uint i = 0u; i < kOwnQuads; ++i) {
        uint quad = i * kShare + part;
        if (quad >= kQuads) break;
#if defined(Q4_0)
        uint to = lane * kStride + quad * 4u;
        uvec4 words = ahead[i], high = words >> 4;
        weights[to] = uvec2(low_bytes(words.x), low_bytes(words.y));
        weights[to + 1u] = uvec2(low_bytes(words.z), low_bytes(words.w));
        weights[to + 2u] = uvec2(low_bytes(high.x), low_bytes(high.y));
        weights[to + 3u] = uvec2(low_bytes(high.z), low_bytes(high.w));
#else
        uint to = lane * kStride + quad * 2u;
        weights[to] = ahead[i].xy;
        weights[to + 1u] = ahead[i].zw;
#endif
    }
}

#if defined(QUANTISED)
void put_columns(uint stage) {
    for (uint i = thread; i < kColumns * kRowPairs; i += kInvocations) {
        uint c = i / kRowPairs, pair = i % kRowPairs, panel = stage + pair / kPanelPairs;
        uint from = column_at(c) + panel * kPanelX + kStepWord + pair % kPanelPairs * 2u;
        uvec2 words = uvec2(0u);
        if (panel < p.panels) words = uvec2(x[from], x[from + 1u]);
        columns[c * kStride + pair] = words;
    }
}

// Of columns part, part + kShare, ...: over up to kSumPanels, and over all before them.
float sums[kOwnColumns], totals[kOwnColumns];

// The sum of each group of a stage.
void multiply(uint stage) {
    for (uint tile = gl_SubgroupID; tile < kSets * kSetTiles; tile += gl_NumSubgroups) {
        uint set = tile / kSetTiles, m = tile % kRowTiles * kM,
             n = tile % kSetTiles / kRowTiles * kN;
        SumTile sum = SumTile(0);
        for (uint k = 0u; k < kPanelElements; k += kK) {
            uint pair = (set * kPanelElements + k) / kPairElements;
            multiply_add(sum, m, n, pair);
        }
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

void add_groups(uint stage) {
    for (uint set = 0u; set < min(kSets, p.panels - stage); ++set) {
        float scale = scale_of(first_panel + (stage + set) * panel_quads(), lane);
        for (uint i = 0u; i < kOwnColumns; ++i) {
            uint c = i * kShare + part;
            uint from = column_at(c) + (stage + set) * kPanelX;
            precise float both = scale * uintBitsToFloat(x[from]);
            precise float term = float(products[(set * kColumns + c) * kStripRows + lane]) * both;
            precise float sum = sums[i] + term;
            sums[i] = sum;
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
             k = stage * kPanelElements + pair * kPairElements;
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
    uint count = min(kPanels * kPanelElements, p.inner - stage * kPanelElements);
    for (uint i = 0u; i < kTiles; ++i) {
        uint tile = gl_SubgroupID + i * gl_NumSubgroups;
        if (tile >= kSetTiles) break;
        uint m = tile % kRowTiles * kM, n = tile / kRowTiles * kN;
        for (uint k = 0u; k < count; k += kK) {
            multiply_add(sums[i], m, kColumns + n, k / kPairElements);
            multiply_add(sums[i], m, n, k / kPairElements);
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
    first_panel = weight_strip() * p.panels * panel_quads();
#if defined(QUANTISED)
    for (uint i = 0u; i < kOwnColumns; ++i) sums[i] = totals[i] = 0.0;
#else
    for (uint i = 0u; i < kTiles; ++i) sums[i] = SumTile(0.0);
    find_peaks();
#endif
    fetch_weights(0u);
    for (uint stage = 0u; stage < p.panels; stage += kPanels) {
        put_weights();
        put_columns(stage);
        fetch_weights(stage + kPanels);
        barrier();
        multiply(stage);
        barrier();
#if defined(QUANTISED)
        if (stage % kSumPanels == 0u) add_up();
        add_groups(stage);
#endif
    }
#if defined(QUANTISED)
    add_up();
#else
    store_all();
    barrier();
#endif
    uint row = gl_WorkGroupID.x * kStripRows + lane;
    for (uint i = 0u; i < kOwnColumns; ++i) {
        uint c = i * kShare + part;
#if defined(QUANTISED)
        write_sum(row, c, totals[i]);
#else
        write_sum(row, c, scaled_back(c));
#endif
    }
}
