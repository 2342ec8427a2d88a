#version 450
// Looks up rows of a table by token; a padding row becomes zero. The table may come in parts, each
// with a dispatch of its own, which writes only the rows that the part holds.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/half.glsl"
#include "lib/row_fields.glsl"

layout(local_size_x = 64) in;
PARAMS(EmbedParams);
WRITES(0, float, embedded);
READS(1, uvec4, weight);
READS(2, int, rows);
#include "lib/weight.glsl"

// Element k of lane `lane`, in the strip that begins at quad `strip`.
float value_of(uint strip, uint lane, uint k) {
    uint group = k / kGroupElements, i = k % kGroupElements, panel = panel_of(strip, group);
#if defined(QUANTISED)
    uint in_panel = group % kPanelGroups, step = i / 4u;
    Codes codes = codes_of(panel, in_panel * kGroupQuads + step / kQuadSteps, lane);
    int code = bitfieldExtract(int(bytes_of(codes, step % kQuadSteps)), int(i % 4u * 8u), 8) -
               int(kOffset);
    PanelScales scales = panel_scales(panel, lane);
    ivec2 whole = whole_scales(scales, in_panel);
    vec2 steps = scale_and_min(scales, lane);
    precise float scale = steps.x * float(whole[kInHalves ? i / 16u : 0u]);
    precise float value = scale * float(code);
    if (kHasLeast) {
        precise float least = steps.y * float(whole.y);
        value = value - least;
    }
    return value;
#else
    return element(float_quad(panel, lane, i), i % kQuadElements);
#endif
}

void main() {
    uint k = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (k >= p.cols) return;
    uint place = at[2] + row * kRowWords, token = uint(rows[place]);
    bool padding = rows[place + kRowSlot] < 0;
    if (padding ? p.first_row != 0u : token - p.first_row >= p.rows) return;
    uint local = token - p.first_row;
    uint strip = local / kStripRows * p.panels * kPanelQuads;
    embedded[at[0] + row * p.out_stride + k] = padding ? 0.0 : value_of(strip, local % kStripRows, k);
}
