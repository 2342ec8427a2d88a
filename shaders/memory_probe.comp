#version 450
// Reads or copies memory; neighbouring invocations take neighbouring quads.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const bool kReadOnly = false;
PARAMS(ProbeParams);
layout(binding = 0, std430) buffer To {
    uvec4 to[];
};
READS(1, uvec4, from);

shared uint mixed;

void main() {
    uint t = gl_LocalInvocationID.x, first = gl_WorkGroupID.x * 64u * p.quads + t;
    uvec4 mix_of = uvec4(0u);
    for (uint i = 0u; i < p.quads; ++i) {
        uvec4 quad = from[first + i * 64u];
        if (kReadOnly)
            mix_of ^= quad;
        else
            to[first + i * 64u] = quad;
    }
    if (!kReadOnly) return;
    if (t == 0u) mixed = 0u;
    barrier();
    atomicXor(mixed, mix_of.x ^ mix_of.y ^ mix_of.z ^ mix_of.w);
    barrier();
    if (t == 0u) to[gl_WorkGroupID.x / 4u][gl_WorkGroupID.x % 4u] = mixed;
}
