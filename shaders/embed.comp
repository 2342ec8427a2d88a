#version 450
// Rows of a table by token; a padding row is zero. The table may come in parts: each invocation
// writes only what its part holds.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/half.glsl"
#include "lib/weight.glsl"
#include "lib/row_fields.glsl"

layout(local_size_x = 64) in;
PARAMS(EmbedParams);
WRITES(0, float, embedded);
READS(1, uint, table);
READS(2, int, rows);

// Element k of a lane of the strip at `strip`, in words.
float element(uint strip, uint lane, uint k) {
    uint panel = strip + k / kPanelElements * panel_quads() * 4u, i = k % kPanelElements;
#if defined(F32)
    return uintBitsToFloat(table[panel + lane * 4u + i]);
#elif defined(F16)
    return half_value(table[panel + lane * 4u + i / 2u] >> (i % 2u * 16u) & 0xffffu);
#elif defined(BF16)
    return uintBitsToFloat(table[panel + lane * 4u + i / 2u] >> (i % 2u * 16u) << 16);
#else
    uint scales = panel + kPanelQuads * kStripRows * 4u;
    float scale = half_value(table[scales + lane / 2u] >> (lane % 2u * 16u) & 0xffffu);
#if defined(Q8_0)
    uint word = table[panel + (i / 16u * kStripRows + lane) * 4u + i % 16u / 4u];
    int q = bitfieldExtract(int(word), int(i % 4u * 8u), 8);
#else
    uint word = table[panel + lane * 4u + i % 16u / 4u];
    int q = int(word >> (i % 4u * 8u + i / 16u * 4u) & 15u) - 8;
#endif
    precise float product = scale * float(q);
    return product;
#endif
}

void main() {
    uint k = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (k >= p.cols) return;
    uint place = at[2] + row * kRowWords, token = uint(rows[place]);
    bool padding = rows[place + kRowSlot] < 0;
    if (padding ? p.first_row != 0u : token - p.first_row >= p.rows) return;
    uint local = token - p.first_row;
    uint strip = at[1] + local / kStripRows * p.panels * panel_quads() * 4u;
    embedded[at[0] + row * p.out_stride + k] = padding ? 0.0 : element(strip, local % kStripRows, k);
}
