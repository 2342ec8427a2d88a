#version 450
// Copies the rows that `index` names, word by word.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"

layout(local_size_x = 64) in;
PARAMS(GatherParams);
WRITES(0, uint, out_words);
READS(1, uint, x);
READS(2, int, index);

void main() {
    uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (i < p.cols)
        out_words[at[0] + row * p.out_stride + i] =
            x[at[1] + uint(index[at[2] + row]) * p.x_stride + i];
}
