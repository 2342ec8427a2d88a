#version 450
// Puts the chunks of attention together in their order: out = out * keep + chunk * weight. A
// workgroup has as many heads of a row as make whole groups of 32 outputs. A dispatch of its own,
// since not every device lets one workgroup see what others wrote in the same one.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 64) in;
PARAMS(MergeParams);
READS(1, float, partial);
READS(2, int, rows);
#include "lib/row_fields.glsl"
#include "lib/partial.glsl"
#include "lib/output.glsl"

const uint kMostChunks = 1024u, kMostTogether = 2u;
shared float keep[kMostTogether * kMostChunks];
shared float weight[kMostTogether * kMostChunks];
shared float inverse_sum[kMostTogether];
uint chunks;

float partial_word(uint head, uint chunk, uint i) {
    return partial[at[1] + partial_place(head, chunk) + i];
}

// What is kept of the chunks before, and how much of this one comes.
void weigh(uint head, uint chunk) {
    float before = -kInfinity;
    for (uint i = 0u; i < chunk; ++i) before = max(before, partial_word(head, i, 0u));
    float own = partial_word(head, chunk, 0u), now = own > before ? own : before;
    precise float lost = before - now, risen = own - now;
    uint i = head % p.together * kMostChunks + chunk;
    keep[i] = exp_of(lost);
    weight[i] = exp_of(risen);
}

float value(uint row, uint i) {
    uint head = i / p.head_dim, d = i % p.head_dim, first = head % p.together * kMostChunks;
    precise float mixed = 0.0;
    for (uint chunk = 0u; chunk < chunks; ++chunk)
        mixed = mixed * keep[first + chunk] +
                partial_word(head, chunk, 2u + d) * weight[first + chunk];
    precise float scaled = mixed * inverse_sum[head % p.together];
    return scaled;
}

void main() {
    uint t = gl_LocalInvocationID.x, row = p.first_row + gl_WorkGroupID.y;
    uint first_head = gl_WorkGroupID.x * p.together;
    chunks = chunks_of(at[2] + row * kRowWords);
    for (uint i = t; i < chunks * p.together; i += 64u) weigh(first_head + i / chunks, i % chunks);
    barrier();
    if (t < p.together) {
        precise float sum = 0.0;
        for (uint chunk = 0u; chunk < chunks; ++chunk)
            sum = sum * keep[t * kMostChunks + chunk] +
                  partial_word(first_head + t, chunk, 1u) * weight[t * kMostChunks + chunk];
        inverse_sum[t] = chunks == 0u ? 0.0 : reciprocal(sum);
    }
    barrier();
    for (uint unit = t; unit < p.units; unit += 64u)
        write_unit(row, gl_WorkGroupID.x * p.units + unit, p.out_stride);
}
