#version 450
// Gumbel noise of a position's tokens, bit for bit gumbel() of core/rng.cpp. An invocation has one
// counter, which gives four words, for tokens that are 16 apart.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/random.glsl"

layout(local_size_x = 64) in;
PARAMS(NoiseParams);
WRITES(0, float, noise);
READS(1, int, positions);

void main() {
    uint counter = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    uint first = counter / 16u * 64u + counter % 16u;
    if (first >= p.vocab) return;
    uvec4 words = philox(uvec2(p.seed_low, p.seed_high),
                         uvec4(counter, uint(positions[at[1] + row]), 0u, 0u));
    for (uint i = 0u; i < 4u; ++i)
        if (first + i * 16u < p.vocab)
            noise[at[0] + row * p.out_stride + first + i * 16u] = gumbel_of(words[i]);
}
