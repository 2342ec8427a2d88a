// RMS norm of a single row of x in a matmul: each workgroup normalises the row for itself, as
// rms_norm.comp does, which is faster than to wait for a dispatch that has one row to do. For a
// float weight, elements are normalised where they are used, once the scale is known; for a
// quantised weight the whole row is put into shared memory as I8G32.
#include "arithmetic.glsl"
READS(9, float, norm_weight);
layout(constant_id = 4) const uint kNormed = 4096u;  // elements of the row
#define SQUARES_AHEAD (kNormed > 32u * 128u ? 32u : (kNormed + 127u) / 128u)
float element(uint i) {
    return x[at[1] + i];
}
#include "sum_of_squares.glsl"

float scale;

float normed(float element, float weight) {
    precise float y = (element * scale) * weight;
    return y;
}

#if defined(QUANTISED)
#include "quantise.glsl"

const uint kInvocations = gl_WorkGroupSize.x * gl_WorkGroupSize.y;
const uint kMaxNormed = 8192u;
shared uint groups_of_x[kMaxNormed / kGroupElements * kGroupX];

// A word is four elements. An invocation holds up to kMaxWordsAhead words at a time, so that most
// rows are loaded only once.
const uint kWords = kNormed / 4u, kMaxWordsAhead = 8u;
const uint kWordsAhead = kWords > kMaxWordsAhead * kInvocations
                             ? kMaxWordsAhead
                             : (kWords + kInvocations - 1u) / kInvocations;
const uint kRounds = (kWords + kWordsAhead * kInvocations - 1u) / (kWordsAhead * kInvocations);
vec4 elements_of_x[kMaxWordsAhead], weights_of_x[kMaxWordsAhead];

#define EACH_WORD(j) [[unroll]] for (uint j = 0u; j < kWordsAhead; ++j)

uint own_word(uint round, uint j) {
    return gl_LocalInvocationIndex + (round * kWordsAhead + j) * kInvocations;
}

// Words beyond the last one are copies of it.
uint word_at(uint round, uint j) {
    return min(own_word(round, j), kWords - 1u);
}

void read_words(uint round) {
    EACH_WORD(j) {
        uint k = word_at(round, j) * 4u;
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
            elements_of_x[j][i] = x[at[1] + k + i];
            weights_of_x[j][i] = norm_weight[at[9] + k + i];
        }
    }
}

vec4 normed_word(uint j) {
    vec4 word;
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
        word[i] = normed(elements_of_x[j][i], weights_of_x[j][i]);
    return word;
}

// Word 0 of a group is its amax at first.
void find_largest(uint round) {
    EACH_WORD(j) {
        uvec4 bits = floatBitsToUint(normed_word(j)) & 0x7fffffffu;
        atomicMax(groups_of_x[word_at(round, j) / 8u * kGroupX],
                  max(max(bits.x, bits.y), max(bits.z, bits.w)));
    }
}

void put_words(uint round) {
    EACH_WORD(j) {
        uint word = word_at(round, j), group = word / 8u * kGroupX;
        uint largest = groups_of_x[group], packed = 0u;
        float inverse = steps_of_one(largest);
        vec4 elements = normed_word(j);
        [[unroll]] for (uint i = 0u; i < 4u; ++i)
            packed |= (uint(quant_of(elements[i], inverse)) & 0xffu) << (8u * i);
        if (own_word(round, j) < kWords && is_used(largest))
            groups_of_x[group + kStepWord + word % 8u] = packed;
    }
}

// Normalises the row. All invocations call it.
void norm_row() {
    // 1. The first words, while shared memory is cleared; the scale of the norm.
    read_words(0u);
    const uint groups = kNormed / kGroupElements;
    for (uint i = gl_LocalInvocationIndex; i < groups * kGroupX; i += kInvocations)
        groups_of_x[i] = 0u;
    scale = normal_scale(kNormed, p.inverse_inner, p.epsilon);
    // 2. The amax of each group.
    for (uint round = 0u; round < kRounds; ++round) {
        if (round > 0u) read_words(round);
        find_largest(round);
    }
    barrier();
    // 3. The quantised values.
    for (uint round = 0u; round < kRounds; ++round) {
        if (kRounds > 1u) read_words(round);
        put_words(round);
    }
    barrier();
    // 4. Scales and sums, in the place of the amax.
    for (uint i = gl_LocalInvocationIndex; i < groups; i += kInvocations) {
        uint group = i * kGroupX;
        int sums[2] = {0, 0};
        [[unroll]] for (uint j = 0u; j < 8u; ++j)
            sums[j / 4u] += sum_of(groups_of_x[group + kStepWord + j]);
        groups_of_x[group] = step_word(groups_of_x[group]);
        groups_of_x[group + 1u] = sums_word(sums[0], sums[1]);
    }
    barrier();
}
#else
void norm_row() {
    scale = normal_scale(kNormed, p.inverse_inner, p.epsilon);
}
#endif
