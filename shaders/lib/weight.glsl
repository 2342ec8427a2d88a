// A weight in strips of 32 rows (backends/vulkan/weight.h). Compiled once a type: F32, F16, BF16,
// Q8_0 or Q4_0 is defined.
const uint kStripRows = 32u;

#if defined(F32)
const uint kPanelElements = 4u, kPanelQuads = 1u;
#elif defined(F16) || defined(BF16)
const uint kPanelElements = 8u, kPanelQuads = 1u;
#elif defined(Q8_0)
const uint kPanelElements = 32u, kPanelQuads = 2u;
#else
const uint kPanelElements = 32u, kPanelQuads = 1u;
#endif

#if defined(Q8_0) || defined(Q4_0)
#define QUANTISED
const uint kSumPanels = 32u;  // of a part of the sum (kSumPart in core/quant.h)
const uint kScaleQuads = 4u;  // 32 f16
#else
const uint kScaleQuads = 0u;
#endif

uint panel_quads() {
    return kPanelQuads * kStripRows + kScaleQuads;
}

#if defined(Q4_0)
// Four nibbles less 8, as signed bytes.
uint low_bytes(uint word) {
    return (((word & 0x0f0f0f0fu) | 0x80808080u) - 0x08080808u) ^ 0x80808080u;
}
#endif
