// One over the root mean square of some elements, by a workgroup. The squares are added in 128
// lanes, which are halved in a fixed order (core/arithmetic.h). The including shader defines
// element(i), and may define SQUARES_AHEAD, the elements that a lane loads before it adds the first
// of them, at most 32.
#if !defined(SQUARES_AHEAD)
#define SQUARES_AHEAD 8u
#endif
shared float lanes[128];

float element(uint i);

float squares_of_lane(uint lane, uint count) {
    precise float sum = 0.0;
    for (uint i = lane; i < count; i += SQUARES_AHEAD * 128u) {
        float v[32];
        [[unroll]] for (uint j = 0u; j < SQUARES_AHEAD; ++j)
            v[j] = element(min(i + j * 128u, count - 1u));
        [[unroll]] for (uint j = 0u; j < SQUARES_AHEAD; ++j) {
            precise float more = sum + v[j] * v[j];
            sum = i + j * 128u < count ? more : sum;
        }
    }
    return sum;
}

float sum_of_squares(uint count) {
    uint t = gl_LocalInvocationIndex, invocations = gl_WorkGroupSize.x * gl_WorkGroupSize.y;
    for (uint lane = t; lane < 128u; lane += invocations) lanes[lane] = squares_of_lane(lane, count);
    barrier();
    precise float sum = 0.0;
    if (t < 16u) {
        precise float a = (lanes[t] + lanes[t + 64u]) + (lanes[t + 32u] + lanes[t + 96u]);
        precise float b =
            (lanes[t + 16u] + lanes[t + 80u]) + (lanes[t + 48u] + lanes[t + 112u]);
        sum = a + b;
    }
    barrier();
    if (t < 16u) lanes[t] = sum;
    barrier();
    precise float halves[8];
    for (uint i = 0u; i < 8u; ++i) halves[i] = lanes[i] + lanes[i + 8u];
    for (uint i = 0u; i < 4u; ++i) halves[i] = halves[i] + halves[i + 4u];
    sum = (halves[0] + halves[2]) + (halves[1] + halves[3]);
    return sum;
}

float normal_scale(uint count, float inverse_count, float epsilon) {
    precise float mean = sum_of_squares(count) * inverse_count;
    precise float shifted = mean + epsilon;
    return inverse_sqrt(shifted);
}
