// Reads a weight in strips of 32 rows, laid out as backends/vulkan/panels.h says. It is compiled
// once per type, with the type's name defined. The including shader binds the strips as quads,
// `weight`.
const uint kStripRows = 32u;

// A group is multiplied at a time. Constants of each type: elements of a panel and of a group,
// bytes of a row in a panel, and quads of a group. Quantised types also have: the bits of a code
// above its nibble, and the offset that is subtracted from a code; whether there are mins; and
// whether there are integer scales, one for a group or one for each half of it.
#if defined(F32)
const uint kPanelElements = 4u, kGroupElements = 4u, kPanelBytes = 16u, kGroupQuads = 1u;
#elif defined(F16)  // a row's panel is one piece, like x in lib/halves.glsl
const uint kPanelElements = 16u, kGroupElements = 16u, kPanelBytes = 32u, kGroupQuads = 2u;
#elif defined(BF16)
const uint kPanelElements = 8u, kGroupElements = 8u, kPanelBytes = 16u, kGroupQuads = 1u;
#else
#define QUANTISED
const uint kGroupElements = 32u, kSumGroups = 32u;  // kSumGroups: in a part of a sum (core/quant.h)
#if defined(Q8_0)
const uint kPanelElements = 32u, kPanelBytes = 34u, kGroupQuads = 2u, kHighBits = 0u, kOffset = 0u;
const bool kHasLeast = false, kHasWhole = false, kInHalves = false;
#elif defined(Q4_0)
const uint kPanelElements = 32u, kPanelBytes = 18u, kGroupQuads = 1u, kHighBits = 0u, kOffset = 8u;
const bool kHasLeast = false, kHasWhole = false, kInHalves = false;
#elif defined(Q5_0)
const uint kPanelElements = 32u, kPanelBytes = 22u, kGroupQuads = 1u, kHighBits = 1u, kOffset = 16u;
const bool kHasLeast = false, kHasWhole = false, kInHalves = false;
#elif defined(Q5_1)
const uint kPanelElements = 32u, kPanelBytes = 24u, kGroupQuads = 1u, kHighBits = 1u, kOffset = 0u;
const bool kHasLeast = true, kHasWhole = false, kInHalves = false;
#elif defined(Q4_K)
const uint kPanelElements = 256u, kPanelBytes = 144u, kGroupQuads = 1u, kHighBits = 0u, kOffset = 0u;
const bool kHasLeast = true, kHasWhole = true, kInHalves = false;
#elif defined(Q5_K)
const uint kPanelElements = 256u, kPanelBytes = 176u, kGroupQuads = 1u, kHighBits = 1u, kOffset = 0u;
const bool kHasLeast = true, kHasWhole = true, kInHalves = false;
#else  // Q6_K
const uint kPanelElements = 256u, kPanelBytes = 210u, kGroupQuads = 1u, kHighBits = 2u, kOffset = 32u;
const bool kHasLeast = false, kHasWhole = true, kInHalves = true;
#endif
#endif

const uint kPanelGroups = kPanelElements / kGroupElements;
const uint kPanelQuads = kPanelBytes * kStripRows / 16u;  // quads of all rows in a panel

// The first quad of the panel with this group, in a strip that begins at quad `strip`.
uint panel_of(uint strip, uint group) {
    return strip + group / kPanelGroups * kPanelQuads;
}

#if defined(QUANTISED)
const uint kQuadSteps = 8u / kGroupQuads;  // words of four codes that a quad stands for

// Word i of a row's panel, counted as if the panel were in one piece. The words behind the last
// whole quad lie one by one, beside those of the other rows.
const uint kQuadWords = kPanelBytes / 16u * 4u;
uint word_of(uint panel, uint i, uint lane) {
    if (kPanelBytes % 16u < 4u || i < kQuadWords)
        return weight[panel + i / 4u * kStripRows + lane][i % 4u];
    uint place = i * kStripRows + lane;
    return weight[panel + place / 4u][place % 4u];
}

// A quad of codes, or of their nibbles, and the words with the high bits of these codes.
struct Codes {
    uvec4 low;
    uvec2 high;
};

Codes codes_of(uint panel, uint quad, uint lane) {
    Codes codes = Codes(weight[panel + quad * kStripRows + lane], uvec2(0u));
    uint first = kPanelGroups * 4u + quad * kHighBits;
    if (kHighBits > 0u) codes.high.x = word_of(panel, first, lane);
    if (kHighBits > 1u) codes.high.y = word_of(panel, first + 1u, lane);
    return codes;
}

// Four codes as bytes: signed in Q8_0, otherwise at least 0.
uint bytes_of(Codes codes, uint step) {
    if (kGroupQuads == 2u) return codes.low[step];
    uint bytes = codes.low[step % 4u] >> (step / 4u * 4u) & 0x0f0f0f0fu;
    if (kHighBits > 0u) {
        uint high = codes.high[step * kHighBits / 8u], from = step * kHighBits % 8u;
        high = from < 4u ? high << (4u - from) : high >> (from - 4u);
        bytes |= high & (kHighBits == 1u ? 0x10101010u : 0x30303030u);
    }
    return bytes;
}

// The scales that the groups of a panel share, as they are stored.
struct PanelScales {
    uint halves;
    uvec4 whole;
};

PanelScales panel_scales(uint panel, uint lane) {
    PanelScales scales = PanelScales(0u, uvec4(0u));
    if (kHasWhole) scales.whole = weight[panel + (kQuadWords / 4u - 1u) * kStripRows + lane];
    if (kHasLeast) {
        scales.halves = kHasWhole ? scales.whole.x : word_of(panel, kPanelBytes / 4u - 1u, lane);
    } else {  // a word holds the scales of two rows
        uint place = (kPanelBytes / 2u - 1u) * kStripRows + lane;
        scales.halves = weight[panel + place / 8u][place / 2u % 4u];
    }
    return scales;
}

// The f16 scale, and the min if the type has mins.
vec2 scale_and_min(PanelScales scales, uint lane) {
    if (kHasLeast) return vec2(half_value(scales.halves & 0xffffu), half_value(scales.halves >> 16));
    return vec2(half_value(scales.halves >> (lane % 2u * 16u) & 0xffffu), 0.0);
}

// The integer scales of a group: those of its halves, or its scale and its min.
ivec2 whole_scales(PanelScales scales, uint in_panel) {
    if (!kHasWhole) return ivec2(1);
    if (kInHalves) {
        int both = int(scales.whole[in_panel / 2u]), from = int(in_panel % 2u * 16u);
        return ivec2(bitfieldExtract(both, from, 8), bitfieldExtract(both, from + 8, 8));
    }
    uvec3 bits = scales.whole.yzw >> in_panel * 4u;
    return ivec2((bits.x & 15u) | (bits.z & 3u) << 4, (bits.y & 15u) | (bits.z & 12u) << 2);
}
#else
const uint kQuadElements = kPanelElements / kGroupQuads;

// The quad of a lane's panel that has element i.
uvec4 float_quad(uint panel, uint lane, uint i) {
    return weight[panel + lane * kGroupQuads + i / kQuadElements];
}

// Element i of a quad.
float element(uvec4 words, uint i) {
#if defined(F32)
    return uintBitsToFloat(words[i]);
#elif defined(F16)
    return half_value(words[i / 2u] >> (i % 2u * 16u) & 0xffffu);
#else
    return uintBitsToFloat(words[i / 2u] >> (i % 2u * 16u) << 16);
#endif
}
#endif
