#version 450
// Orders the places of all rows by expert, and lists the tiles of each expert (backend/routing.h).
// One workgroup per expert.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"

layout(local_size_x = 64) in;
PARAMS(PlacesParams);
WRITES(0, uint, order);
WRITES(1, uint, tiles);
READS(2, uint, ids);

const uint kMaxExperts = 1024u, kTileRows = 64u;
shared uint counts[kMaxExperts];
shared uint here[64];

uint expert_of(uint place) {
    return ids[at[2] + place / p.chosen * p.ids_stride + place % p.chosen];
}

void write_tile(uint index, uint expert, uint first, uint count) {
    uint to = at[1] + index * 3u;
    tiles[to] = expert;
    tiles[to + 1u] = first;
    tiles[to + 2u] = count;
}

// Writes the places of an expert in ascending order, from order[first] on.
void write_places(uint expert, uint first) {
    uint t = gl_LocalInvocationID.x;
    for (uint from = 0u; from < p.places; from += 64u) {
        bool is_here = from + t < p.places && expert_of(min(from + t, p.places - 1u)) == expert;
        here[t] = is_here ? 1u : 0u;
        barrier();
        uint earlier = 0u, all = 0u;
        for (uint i = 0u; i < 64u; ++i) {
            if (i == t) earlier = all;
            all += here[i];
        }
        if (is_here) order[at[0] + first + earlier] = from + t;
        first += all;
        barrier();
    }
}

void main() {
    uint t = gl_LocalInvocationID.x, expert = gl_WorkGroupID.x;
    for (uint e = t; e < p.experts; e += 64u) counts[e] = 0u;
    barrier();
    for (uint place = t; place < p.places; place += 64u) atomicAdd(counts[expert_of(place)], 1u);
    barrier();
    uint first = 0u, tile = 0u;
    for (uint e = 0u; e < expert; ++e) {
        first += counts[e];
        tile += (counts[e] + kTileRows - 1u) / kTileRows;
    }
    uint count = counts[expert], expert_tiles = (count + kTileRows - 1u) / kTileRows;
    for (uint i = t; i < expert_tiles; i += 64u)
        write_tile(tile + i, expert, first + i * kTileRows, min(kTileRows, count - i * kTileRows));
    if (expert + 1u == p.experts)
        for (uint i = tile + expert_tiles + t; i < p.most_tiles; i += 64u) write_tile(i, 0u, 0u, 0u);
    if (count > 0u) write_places(expert, first);
}
