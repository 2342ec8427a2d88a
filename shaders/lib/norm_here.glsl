// The one row of x, normalised by each workgroup for itself as rms_norm.comp does: quicker than to
// wait for a dispatch that has one row to do. Floats are normalised where they are used, once the
// scale is known; for a quantised weight the row lies in groups of I8G32, in shared memory.
#include "arithmetic.glsl"
READS(9, float, norm_weight);
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
const uint kMostNormed = 8192u;  // elements
shared uint groups_of_x[kMostNormed / kGroupElements * kGroupX];

// Words of four elements that an invocation has at a time.
const uint kWordsAhead = 4u;
vec4 words_of_x[kWordsAhead];

uint word_at(uint first, uint j, uint words) {
    return min(first + j * kInvocations, words - 1u);
}

void read_words(uint first, uint words) {
    vec4 elements[kWordsAhead], weights[kWordsAhead];
    [[unroll]] for (uint j = 0u; j < kWordsAhead; ++j) {
        uint k = word_at(first, j, words) * 4u;
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
            elements[j][i] = x[at[1] + k + i];
            weights[j][i] = norm_weight[at[9] + k + i];
        }
    }
    [[unroll]] for (uint j = 0u; j < kWordsAhead; ++j)
        [[unroll]] for (uint i = 0u; i < 4u; ++i)
            words_of_x[j][i] = normed(elements[j][i], weights[j][i]);
}

// Word 0 of a group is the largest magnitude first.
void find_largest(uint words) {
    for (uint first = gl_LocalInvocationIndex; first < words; first += kWordsAhead * kInvocations) {
        read_words(first, words);
        [[unroll]] for (uint j = 0u; j < kWordsAhead; ++j) {
            uvec4 bits = floatBitsToUint(words_of_x[j]) & 0x7fffffffu;
            uint largest = max(max(bits.x, bits.y), max(bits.z, bits.w));
            atomicMax(groups_of_x[word_at(first, j, words) / 8u * kGroupX], largest);
        }
    }
}

void put_words(uint words) {
    for (uint first = gl_LocalInvocationIndex; first < words; first += kWordsAhead * kInvocations) {
        read_words(first, words);
        [[unroll]] for (uint j = 0u; j < kWordsAhead; ++j) {
            uint word = first + j * kInvocations, group = min(word, words - 1u) / 8u * kGroupX;
            uint largest = groups_of_x[group], packed = 0u;
            float inverse = steps_of_one(largest);
            [[unroll]] for (uint i = 0u; i < 4u; ++i)
                packed |= (uint(steps_of(words_of_x[j][i], inverse)) & 0xffu) << (8u * i);
            if (word < words && is_used(largest)) groups_of_x[group + kStepWord + word % 8u] = packed;
        }
    }
}

// All of them, by all invocations.
void norm_row() {
    uint index = gl_LocalInvocationIndex;
    uint groups = p.inner / kGroupElements;
    for (uint i = index; i < groups * kGroupX; i += kInvocations) groups_of_x[i] = 0u;
    scale = normal_scale(p.inner, p.inverse_inner, p.epsilon);
    find_largest(groups * 8u);
    barrier();
    put_words(groups * 8u);
    barrier();
    for (uint i = index; i < groups; i += kInvocations) {
        uint group = i * kGroupX;
        int sums[2] = {0, 0};
        for (uint j = 0u; j < 8u; ++j) sums[j / 4u] += sum_of(groups_of_x[group + kStepWord + j]);
        groups_of_x[group] = step_word(groups_of_x[group]);
        groups_of_x[group + 1u] = sums_word(sums[0], sums[1]);
    }
    barrier();
}
#else
void norm_row() {
    scale = normal_scale(p.inner, p.inverse_inner, p.epsilon);
}
#endif
