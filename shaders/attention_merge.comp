#version 450
// Merges the chunks of attention in ascending order: out = out * keep + chunk * weight. A workgroup
// has as many heads of a row as make whole groups of 32 outputs. This is a dispatch of its own,
// since not every device lets a workgroup see what others wrote in the same dispatch.
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

// Chunks are merged in blocks, so that little shared memory is used and many workgroups fit into a
// compute unit.
const uint kBlock = 128u, kMaxTogether = 2u, kMaxOutputs = 1024u * kMaxTogether;
const uint kAtOnce = 8u;  // chunks that are loaded before the first of them is added
shared float keep[kMaxTogether * kBlock];
shared float weight[kMaxTogether * kBlock];
shared float largest_of[64];
shared float sums[kMaxTogether];
shared float outputs[kMaxOutputs];
uint t, chunks;
float reached[kMaxTogether];  // the maximum of S in earlier blocks

float partial_word(uint head, uint chunk, uint i) {
    return partial[at[1] + partial_place(gl_WorkGroupID.y, head, chunk) + i];
}

// Computes keep and weight of each chunk of a block, which depend on the maximum of all chunks
// before it. Every invocation has some consecutive chunks; the maximum of those before them is
// found by a scan.
void weigh(uint which, uint head, uint block, uint count) {
    uint first = which * kBlock;
    for (uint i = t; i < count; i += 64u) weight[first + i] = partial_word(head, block + i, 0u);
    barrier();
    uint share = (count + 63u) / 64u, begin = min(t * share, count);
    uint end = min(begin + share, count);
    float so_far = reached[which];
    for (uint i = begin; i < end; ++i) so_far = max(so_far, weight[first + i]);
    largest_of[t] = so_far;
    barrier();
    for (uint distance = 1u; distance < 64u; distance *= 2u) {
        so_far = max(so_far, largest_of[t - min(t, distance)]);
        barrier();
        largest_of[t] = so_far;
        barrier();
    }
    float before = t == 0u ? reached[which] : largest_of[t - 1u];
    for (uint i = begin; i < end; ++i) {
        float largest = weight[first + i], now = largest > before ? largest : before;
        precise float lost = before - now, risen = largest - now;
        keep[first + i] = exp_of(lost);
        weight[first + i] = exp_of(risen);
        before = max(before, largest);
    }
    reached[which] = largest_of[63];
    barrier();
}

// Merges word i of a block's chunks, in order, into `before`, the result of the earlier blocks.
float with_block(float before, uint which, uint head, uint i, uint block, uint count) {
    uint first = which * kBlock, chunk = 0u;
    precise float mixed = before;
    for (; chunk + kAtOnce <= count; chunk += kAtOnce) {
        float ahead[kAtOnce];
        [[unroll]] for (uint j = 0u; j < kAtOnce; ++j)
            ahead[j] = partial_word(head, block + chunk + j, i);
        [[unroll]] for (uint j = 0u; j < kAtOnce; ++j)
            mixed = mixed * keep[first + chunk + j] + ahead[j] * weight[first + chunk + j];
    }
    if (chunk < count) {
        float last[kAtOnce - 1u];
        [[unroll]] for (uint j = 0u; j < kAtOnce - 1u; ++j)
            last[j] = partial_word(head, block + min(chunk + j, count - 1u), i);
        [[unroll]] for (uint j = 0u; j < kAtOnce - 1u; ++j) {
            uint at_chunk = first + min(chunk + j, count - 1u);
            precise float more = mixed * keep[at_chunk] + last[j] * weight[at_chunk];
            mixed = chunk + j < count ? more : mixed;
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
    // The words of each head are the sum of P, then the outputs. An invocation has the same words
    // in every block.
    uint words = p.head_dim + 1u;
    for (uint i = 0u; i < kMaxTogether; ++i) reached[i] = -kInfinity;
    for (uint block = 0u; block == 0u || block < chunks; block += kBlock) {
        uint count = min(kBlock, chunks - block);
        for (uint i = 0u; i < p.together; ++i) weigh(i, first_head + i, block, count);
        for (uint i = t; i < p.together * words; i += 64u) {
            uint which = i / words, word = i % words, to = which * p.head_dim + word - 1u;
            float before = block == 0u ? 0.0 : word == 0u ? sums[which] : outputs[to];
            float mixed = with_block(before, which, first_head + which, 1u + word, block, count);
            if (word == 0u)
                sums[which] = mixed;
            else
                outputs[to] = mixed;
        }
        barrier();
    }
    for (uint i = t; i < p.together * p.head_dim; i += 64u) {
        float inverse = chunks == 0u ? 0.0 : reciprocal(sums[i / p.head_dim]);
        precise float scaled = outputs[i] * inverse;
        outputs[i] = scaled;
    }
    barrier();
    for (uint unit = t; unit < p.units; unit += 64u)
        write_part(row, unit, gl_WorkGroupID.x * p.units + unit, p.out_stride);
}
