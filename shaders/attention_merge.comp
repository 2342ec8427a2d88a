#version 450
// Puts the chunks of a row together in their order: out = out * keep + chunk * weight. A workgroup
// takes as many heads as make whole groups of 32 outputs.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 64) in;
PARAMS(MergeParams);
READS(1, float, partial);
READS(2, int, rows);
#include "lib/output.glsl"

const uint kMostChunks = 1024u, kMostTogether = 2u;
const uint kRowWords = 37u, kRowPosition = 1u, kRowSlot = 3u;

shared float keep[kMostTogether * kMostChunks];
shared float weight[kMostTogether * kMostChunks];
shared float scale[kMostTogether];  // one over the sum
uint chunks;

uint partial_at(uint head, uint chunk) {
    return at[1] + ((gl_WorkGroupID.y * p.heads + head) * p.chunks + chunk) * (p.head_dim + 2u);
}

float value(uint row, uint i) {
    uint head = i / p.head_dim, d = i % p.head_dim;
    uint first = head % p.together * kMostChunks;
    precise float mixed = 0.0;
    for (uint chunk = 0u; chunk < chunks; ++chunk)
        mixed = mixed * keep[first + chunk] +
                partial[partial_at(head, chunk) + 2u + d] * weight[first + chunk];
    precise float scaled = mixed * scale[head % p.together];
    return scaled;
}

// What is kept of the chunks before, and how much of this one comes.
void weigh(uint head, uint chunk) {
    float before = -kInfinity;
    for (uint i = 0u; i < chunk; ++i) before = max(before, partial[partial_at(head, i)]);
    float own = partial[partial_at(head, chunk)], now = own > before ? own : before;
    precise float lost = before - now, risen = own - now;
    uint i = head % p.together * kMostChunks + chunk;
    keep[i] = exp_of(lost);
    weight[i] = exp_of(risen);
}

void main() {
    uint t = gl_LocalInvocationID.x, row = p.first_row + gl_WorkGroupID.y;
    uint first_head = gl_WorkGroupID.x * p.together, place = at[2] + row * kRowWords;
    chunks = rows[place + kRowSlot] < 0 ? 0u : uint(rows[place + kRowPosition]) / 64u + 1u;
    for (uint i = t; i < chunks * p.together; i += 64u) weigh(first_head + i / chunks, i % chunks);
    barrier();
    if (t < p.together) {
        precise float sum = 0.0;
        for (uint chunk = 0u; chunk < chunks; ++chunk)
            sum = sum * keep[t * kMostChunks + chunk] +
                  partial[partial_at(first_head + t, chunk) + 1u] * weight[t * kMostChunks + chunk];
        scale[t] = chunks == 0u ? 0.0 : reciprocal(sum);
    }
    barrier();
    for (uint unit = t; unit < p.units; unit += 64u)
        write_unit(row, gl_WorkGroupID.x * p.units + unit, p.out_stride);
}
