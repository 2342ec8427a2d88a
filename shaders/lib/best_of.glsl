// Finds the `wanted` best of `count` items (key, id), best first, with 256 invocations. `wanted` is
// at most 64, and `wanted` invocations have at most kMaxReaching items. The including shader
// defines item(i). Ids are below 2^31 and unique, but items of key 0 and id kNoId may fill up the
// rest.
//
// The best items of the invocations are ranked among each other. The one of the last wanted rank is
// a bound, which only items of invocations of that rank or a better one can reach.
const uint kMaxReaching = 1024u;

shared uvec2 leaders[256];
shared uvec2 bound;
shared uint reaching_count;
shared uvec2 reaching[kMaxReaching];
shared uvec2 best_items[64];

uvec2 item(uint i);

void find_best(uint wanted, uint count) {
    uint t = gl_LocalInvocationID.x, rank = 0u;
    uvec2 leader = uvec2(0u, 0x80000000u + t);
    for (uint i = t; i < count; i += 256u) {
        uvec2 other = item(i);
        if (before(other, leader)) leader = other;
    }
    leaders[t] = leader;
    if (t == 0u) reaching_count = 0u;
    barrier();
    for (uint i = 0u; i < min(count, 256u); ++i)
        if (before(leaders[i], leader)) ++rank;
    if (rank == wanted - 1u) bound = leader;
    barrier();
    if (rank < wanted)
        for (uint i = t; i < count; i += 256u) {
            uvec2 other = item(i);
            if (!before(bound, other)) reaching[atomicAdd(reaching_count, 1u)] = other;
        }
    barrier();
    for (uint i = t; i < reaching_count; i += 256u) {
        rank = 0u;
        for (uint j = 0u; j < reaching_count; ++j)
            if (before(reaching[j], reaching[i])) ++rank;
        if (rank < wanted) best_items[rank] = reaching[i];
    }
    barrier();
}
