#version 450
// Puts the chunks of attention together in their order: out = out * keep + chunk * weight. A
// workgroup has as many heads of a row as make whole groups of 32 outputs. A dispatch of its own,
// since not every device lets one workgroup see what others wrote in the same one.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x = 64) in;
PARAMS(MergeParams);
READS(1, float, partial);
READS(2, int, rows);
#include "lib/row_fields.glsl"
#include "lib/partial.glsl"
#include "lib/output.glsl"

const uint kMostChunks = 1024u, kMostTogether = 2u, kMostOutputs = 1024u * kMostTogether;
const uint kAtOnce = 8u;  // chunks that are read before the first of them is added
shared float keep[kMostTogether * kMostChunks];
shared float weight[kMostTogether * kMostChunks];
shared float largest_of[64];
shared float inverse_sum[kMostTogether];
shared float outputs[kMostOutputs];
uint t, chunks;

float partial_word(uint head, uint chunk, uint i) {
    return partial[at[1] + partial_place(gl_WorkGroupID.y, head, chunk) + i];
}

// What is kept of the chunks before, and how much of each comes. Every invocation has some chunks
// in a row, and the largest of all before them.
void weigh(uint head) {
    uint first = head % p.together * kMostChunks;
    for (uint i = t; i < chunks; i += 64u) weight[first + i] = partial_word(head, i, 0u);
    barrier();
    uint share = (chunks + 63u) / 64u, begin = min(t * share, chunks);
    uint end = min(begin + share, chunks);
    float own = -kInfinity;
    for (uint i = begin; i < end; ++i) own = max(own, weight[first + i]);
    largest_of[t] = own;
    barrier();
    for (uint distance = 1u; distance < 64u; distance *= 2u) {
        own = max(own, largest_of[t - min(t, distance)]);
        barrier();
        largest_of[t] = own;
        barrier();
    }
    float before = t == 0u ? -kInfinity : largest_of[t - 1u];
    for (uint i = begin; i < end; ++i) {
        float largest = weight[first + i], now = largest > before ? largest : before;
        precise float lost = before - now, risen = largest - now;
        keep[first + i] = exp_of(lost);
        weight[first + i] = exp_of(risen);
        before = max(before, largest);
    }
    barrier();
}

// Word i of all chunks, in their order.
float mixed_of(uint head, uint i) {
    uint first = head % p.together * kMostChunks;
    precise float mixed = 0.0;
    for (uint chunk = 0u; chunk < chunks; chunk += kAtOnce) {
        float ahead[kAtOnce];
        [[unroll]] for (uint j = 0u; j < kAtOnce; ++j)
            ahead[j] = partial_word(head, min(chunk + j, chunks - 1u), i);
        [[unroll]] for (uint j = 0u; j < kAtOnce; ++j) {
            precise float more = mixed * keep[first + min(chunk + j, chunks - 1u)] +
                                 ahead[j] * weight[first + min(chunk + j, chunks - 1u)];
            mixed = chunk + j < chunks ? more : mixed;
        }
    }
    return mixed;
}

float value(uint row, uint i) {
    return outputs[i];
}

void main() {
    t = gl_LocalInvocationID.x;
    uint row = p.first_row + gl_WorkGroupID.y, first_head = gl_WorkGroupID.x * p.together;
    chunks = chunks_of(at[2] + row * kRowWords);
    for (uint i = 0u; i < p.together; ++i) weigh(first_head + i);
    // Of each head the sum, then the outputs.
    uint words = p.head_dim + 1u;
    for (uint i = t; i < p.together * words; i += 64u) {
        uint head = i / words, word = i % words;
        float mixed = mixed_of(first_head + head, 1u + word);
        if (word == 0u)
            inverse_sum[head] = chunks == 0u ? 0.0 : reciprocal(mixed);
        else
            outputs[head * p.head_dim + word - 1u] = mixed;
    }
    barrier();
    for (uint i = t; i < p.together * p.head_dim; i += 64u) {
        precise float scaled = outputs[i] * inverse_sum[i / p.head_dim];
        outputs[i] = scaled;
    }
    barrier();
    for (uint unit = t; unit < p.units; unit += 64u)
        write_part(row, unit, gl_WorkGroupID.x * p.units + unit, p.out_stride);
}
