#version 450
// Copies rows of logits, to be edited; what a mask forbids becomes NaN.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"

layout(local_size_x = 64) in;
PARAMS(EditParams);
WRITES(0, uint, edited);  // [rows, vocab]
READS(1, uint, logits);
READS(2, uint, mask);

void main() {
    uint id = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (id >= p.vocab) return;
    uint word = logits[at[1] + row * p.logits_stride + id];
    if (p.has_mask != 0u) {
        uint allowed = mask[at[2] + row * p.mask_stride + id / 32u];
        if ((allowed >> (id % 32u) & 1u) == 0u) word = 0x7fc00000u;
    }
    edited[at[0] + row * p.vocab + id] = word;
}
