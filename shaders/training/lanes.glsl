// A workgroup of 128 invocations has a row, or a head of a row. It adds in a fixed order, whatever
// the size of a subgroup.
#include "training/io.glsl"

layout(local_size_x = 128) in;

#define EACH_COLUMN(column, cols) \
    for (uint column = gl_LocalInvocationID.x; column < cols; column += 128u)

shared float lanes[128];

// The sum over all invocations, in each of them.
float sum_of_lanes(float own) {
    const uint t = gl_LocalInvocationID.x;
    barrier();
    lanes[t] = own;
    for (uint others = 64u; others > 0u; others /= 2u) {
        barrier();
        if (t < others) lanes[t] += lanes[t + others];
    }
    barrier();
    return lanes[0];
}
