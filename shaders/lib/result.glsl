// The epilogue of a matmul. Sums are written as they are, or a workgroup has two strips of 32 rows,
// `apart` strips from each other, and combines them:
//   gated: 32 elements of gate and of up; the output is silu(gate) * up, as elements or as an I8G32
//     group. It has no groups if the including shader keeps its results itself (OWN_RESULTS).
//   rotated: both halves of rotations of a head; q is written, k and v go into the cache.
// The rest is computed as in swiglu.comp and rope_append.comp.
const uint kAsItIs = 0u, kGated = 1u, kRotated = 2u;
#if defined(EXPERTS)
const uint kFinish = kAsItIs;
const uint kLanes = 32u;
#else
#if !defined(OWN_RESULTS)
layout(constant_id = 3) const uint kLanes = 32u;  // rows of a workgroup: 32, or 64 with an epilogue
#endif
layout(constant_id = 6) const uint kFinish = 0u;
layout(constant_id = 7) const bool kPacked = false;  // rotated: the cache is in f16; gated: I8G32
const bool kHalfCache = kPacked;
READS(4, float, rope);
READS(5, int, rows);
READS(6, int, pages);
WRITES(7, uint, k_cache);
WRITES(8, uint, v_cache);
#include "cache_rows.glsl"
#include "arithmetic.glsl"
#include "quantise.glsl"

#if defined(OWN_RESULTS)
float result(uint c, uint lane);  // defined by the including shader, for 64 rows
#else
const uint kMaxFinished = 8u;  // columns
shared float results[kMaxFinished * 64u];
shared uint peaks[kMaxFinished], steps_in_words[kMaxFinished * 8u];

float result(uint c, uint lane) {
    return results[c * 64u + lane];
}
#endif
#endif

// The number of the workgroup's first or second strip (`which` 0 or 1).
uint strip_number(uint which) {
    uint y = gl_WorkGroupID.y;
#if !defined(EXPERTS)
    if (kFinish != kAsItIs) return y / p.apart * 2u * p.apart + y % p.apart + which * p.apart;
#endif
    return y;
}

#if !defined(OWN_RESULTS)
// Takes the sum of an output row, with `held` and `more` from ask_for(). `lane` is below kLanes.
void put_result(uint row, uint c, uint lane, float sum, float held, float more) {
#if !defined(EXPERTS)
    if (kFinish != kAsItIs) {
        results[c * 64u + lane] = with_bias(sum, more);
        return;
    }
#endif
    write_sum(row, c, sum, held, more);
}
#endif

#if !defined(EXPERTS)
#if !defined(OWN_RESULTS)
// Writes a group, of which 32 neighbouring invocations have an element each. All invocations call
// it.
void write_group(bool is_mine, uint c, uint i, float element, uint to) {
    if (is_mine && i < 8u) steps_in_words[c * 8u + i] = 0u;
    if (is_mine && i == 0u) peaks[c] = 0u;
    barrier();
    if (is_mine) atomicMax(peaks[c], floatBitsToUint(element) & 0x7fffffffu);
    barrier();
    uint largest = peaks[c];
    if (is_mine && is_used(largest)) {
        uint steps = uint(quant_of(element, steps_of_one(largest))) & 0xffu;
        atomicOr(steps_in_words[c * 8u + i / 4u], steps << (8u * (i % 4u)));
    }
    barrier();
    if (!is_mine) return;
    if (i == 0u) product[to] = step_word(largest);
    if (i == 1u) {
        int sums[2] = {0, 0};
        for (uint j = 0u; j < 8u; ++j) sums[j / 4u] += sum_of(steps_in_words[c * 8u + j]);
        product[to + 1u] = sums_word(sums[0], sums[1]);
    }
    if (i < 8u) product[to + 2u + i] = steps_in_words[c * 8u + i];
}
#endif

void gate(uint columns) {
    uint invocations = gl_WorkGroupSize.x * gl_WorkGroupSize.y;
    for (uint first = 0u; first < columns * 32u; first += invocations) {
        uint all = first + gl_LocalInvocationIndex, i = all % 32u, c = min(all / 32u, columns - 1u);
        bool is_mine = all < columns * 32u && has_column(c);
        precise float element = silu(result(c, i)) * result(c, 32u + i);
        uint to = at[0] + (first_column + c) * p.out_stride;
#if !defined(OWN_RESULTS)
        if (kPacked) write_group(is_mine, c, i, element, to + gl_WorkGroupID.y * 10u);
        is_mine = is_mine && !kPacked;
#endif
        if (is_mine)
            product[to + gl_WorkGroupID.y * 32u + i] = floatBitsToUint(element);
    }
}

// Rotates elements i and i + 1 of both halves and stores them.
void finish_rotation(uint c, uint i) {
    uint head = gl_WorkGroupID.y / p.apart, k = gl_WorkGroupID.y % p.apart * 32u + i;
    uint row = first_column + c, place = at[5] + row * kRowWords, half_dim = p.head_dim / 2u;
    uint keys = p.heads, values = p.heads + p.kv_heads;
    int slot = rows[place + kRowSlot];
    uint position = uint(rows[place + kRowPosition]), sequence = uint(rows[place + kRowSequence]);
    vec2 low = vec2(result(c, i), result(c, i + 1u));
    vec2 high = vec2(result(c, i + 32u), result(c, i + 33u));
    if (slot < 0) return;
    uint cached = 0u;
    if (head >= keys) cached = cache_row(at[6] + sequence * p.pages_stride, uint(slot));
    if (head < values) {
        uint angle = at[4] + position * p.rope_stride + k;
        rotate(low, high, vec2(rope[angle], rope[angle + 1u]),
               vec2(rope[angle + half_dim], rope[angle + half_dim + 1u]));
    }
    if (head < keys) {
        uint to = at[0] + row * p.out_stride + head * p.head_dim + k;
        product[to] = floatBitsToUint(low.x);
        product[to + 1u] = floatBitsToUint(low.y);
        product[to + half_dim] = floatBitsToUint(high.x);
        product[to + half_dim + 1u] = floatBitsToUint(high.y);
        return;
    }
    if (head < values) {
        uint to = at[7] + cached * p.k_stride, first = (head - keys) * p.head_dim + k;
        store_k(to, first, low);
        store_k(to, first + half_dim, high);
    } else {
        uint to = at[8] + cached * p.v_stride, first = (head - values) * p.head_dim + k;
        store_v(to, first, low);
        store_v(to, first + half_dim, high);
    }
}

void rotate_heads(uint columns) {
    uint invocations = gl_WorkGroupSize.x * gl_WorkGroupSize.y;
    for (uint all = gl_LocalInvocationIndex; all < columns * 16u; all += invocations)
        if (has_column(all / 16u)) finish_rotation(all / 16u, all % 16u * 2u);
}
#endif

// Runs the epilogue once all results are there. All invocations call it.
void finish_results(uint columns) {
#if !defined(EXPERTS)
    if (kFinish == kAsItIs) return;
    barrier();
    if (kFinish == kGated) gate(columns);
    if (kFinish == kRotated) rotate_heads(columns);
#endif
}
