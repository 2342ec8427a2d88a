#version 450
// attention_merge.comp for drivers that run shaders on a CPU: an invocation has 32 outputs of a row
// and computes them alone, so that nothing is shared.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/io.glsl"
#include "lib/arithmetic.glsl"

layout(local_size_x_id = 1) in;
PARAMS(MergeParams);
READS(1, float, partial);
READS(2, int, rows);
#include "lib/row_fields.glsl"
#include "lib/partial.glsl"
#include "lib/output.glsl"

#define EACH(count, i) [[unroll]] for (uint i = 0u; i < count; ++i)

const uint kOutputs = 32u, kHalf = 16u;  // each half belongs to one head
float outputs[kOutputs];

float value(uint row, uint i) {
    return outputs[i % kOutputs];
}

void merge_half(uint begin, uint first, uint chunks) {
    uint from = at[1] + partial_place(gl_WorkGroupID.y, begin / p.head_dim, 0u);
    uint words = p.head_dim + 2u, element = begin % p.head_dim;
    float before = -kInfinity;
    precise float sum = 0.0, mixed[kHalf];
    EACH(kHalf, i) mixed[i] = 0.0;
    [[dont_unroll]] for (uint chunk = 0u; chunk < chunks; ++chunk) {
        float largest = partial[from], now = largest > before ? largest : before;
        precise float lost = before - now, risen = largest - now;
        float keep = exp_of(lost), weight = exp_of(risen);
        sum = sum * keep + partial[from + 1u] * weight;
        EACH(kHalf, i) mixed[i] = mixed[i] * keep + partial[from + 2u + element + i] * weight;
        before = max(before, largest);
        from += words;
    }
    float inverse_sum = chunks == 0u ? 0.0 : reciprocal(sum);
    EACH(kHalf, i) {
        precise float scaled = mixed[i] * inverse_sum;
        outputs[first + i] = scaled;
    }
}

void main() {
    uint row = p.first_row + gl_WorkGroupID.y, group = gl_GlobalInvocationID.x;
    uint begin = group * kOutputs, end = min(begin + kOutputs, p.heads * p.head_dim);
    if (begin >= end) return;
    uint chunks = chunks_of(at[2] + row * kRowWords);
    merge_half(begin, 0u, chunks);
    if (begin + kHalf < end) merge_half(begin + kHalf, kHalf, chunks);
    if (kQuantise)
        write_unit(row, group, p.out_stride);
    else
        EACH(kOutputs, i) if (begin + i < end) write_unit(row, begin + i, p.out_stride);
}
