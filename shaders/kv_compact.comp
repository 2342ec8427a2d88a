#version 450
// Moves rows of a cache down, one after another. An invocation has one column of all of them, so
// that source and target may overlap.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"

layout(local_size_x = 64) in;
PARAMS(CompactParams);
WRITES(0, uint, k_cache);
WRITES(1, uint, v_cache);
READS(2, int, moves);  // KvMove: sequence, from slot, to slot
READS(3, int, pages);
#include "lib/rows.glsl"

void main() {
    uint word = gl_GlobalInvocationID.x;
    if (word >= p.words) return;
    for (uint i = 0u; i < p.count; ++i) {
        uint move = at[2] + i * 3u;
        uint pages_at = at[3] + uint(moves[move]) * p.pages_stride;
        uint from = cache_row(pages_at, uint(moves[move + 1u]));
        uint to = cache_row(pages_at, uint(moves[move + 2u]));
        k_cache[at[0] + to * p.k_stride + word] = k_cache[at[0] + from * p.k_stride + word];
        v_cache[at[1] + to * p.v_stride + word] = v_cache[at[1] + from * p.v_stride + word];
    }
}
