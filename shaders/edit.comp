#version 450
// Rows of logits after edits and mask; what a mask forbids becomes NaN. A workgroup has a slice of
// a row. Edits of one token are applied one by one in their order: in each round the first of each
// token that is left. Nearly always one round is all.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/quotient.glsl"

layout(local_size_x = 256) in;
PARAMS(EditParams);
WRITES(0, uint, edited);  // [rows, vocab]
READS(1, uint, logits);
READS(2, uint, mask);
READS(3, int, edits);  // [count][4]: row (-1: all), token, divide, add; by row

const uint kNone = 0xffffffffu;

shared uint words[kEditSlice];      // logits
shared uint following[kEditSlice];  // the next edit of each token
shared uint applied[kEditSlice];    // 1 + the last one
shared bool left;

uint first, count;       // tokens of the slice
uint general, own, all;  // edits of every row, the first of this row, both together

// Edits of rows before this one.
uint edits_before(int row) {
    uint low = 0u, high = p.edits;
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (edits[at[3] + middle * 4u] < row)
            low = middle + 1u;
        else
            high = middle;
    }
    return low;
}

// Edit i of the row, ascending, and its place in the slice: at least `count` if it is in another.
uint edit_of(uint i, out uint place) {
    uint edit = i < general ? i : own + i - general;
    place = uint(edits[at[3] + edit * 4u + 1u]) - first;
    return edit;
}

uint apply(uint edit, uint word) {
    if ((word & 0x7fffffffu) > 0x7f800000u) return word;
    float logit = uintBitsToFloat(word), divide = intBitsToFloat(edits[at[3] + edit * 4u + 2u]);
    precise float scaled = logit * divide;
    if (word != 0u && word < 0x80000000u) scaled = quotient(logit, divide);
    precise float sum = scaled + intBitsToFloat(edits[at[3] + edit * 4u + 3u]);
    return floatBitsToUint(sum);
}

void load(uint row) {
    for (uint i = gl_LocalInvocationID.x; i < count; i += 256u) {
        uint id = first + i;
        words[i] = logits[at[1] + row * p.logits_stride + id];
        if (p.has_mask != 0u) {
            uint allowed = mask[at[2] + row * p.mask_stride + id / 32u];
            if ((allowed >> (id % 32u) & 1u) == 0u) words[i] = 0x7fc00000u;
        }
        following[i] = kNone;
        applied[i] = 0u;
    }
}

// One round; tells whether it left any.
bool apply_first_ones() {
    uint t = gl_LocalInvocationID.x, place;
    for (uint i = t; i < all; i += 256u) {
        uint edit = edit_of(i, place);
        if (place < count && edit >= applied[place]) atomicMin(following[place], edit);
    }
    if (t == 0u) left = false;
    barrier();
    for (uint i = t; i < all; i += 256u) {
        uint edit = edit_of(i, place);
        if (place >= count || edit < following[place]) continue;
        if (edit > following[place]) {
            left = true;
        } else {
            words[place] = apply(edit, words[place]);
            applied[place] = edit + 1u;
        }
    }
    barrier();
    return left;
}

void main() {
    uint row = gl_WorkGroupID.y, t = gl_LocalInvocationID.x;
    first = gl_WorkGroupID.x * kEditSlice;
    count = min(p.vocab - first, kEditSlice);
    load(row);
    general = edits_before(0);
    own = edits_before(int(p.first_row + row));
    all = general + edits_before(int(p.first_row + row) + 1) - own;
    barrier();
    while (all > 0u && apply_first_ones()) {
        for (uint i = t; i < count; i += 256u) following[i] = kNone;
        barrier();
    }
    for (uint i = t; i < count; i += 256u) edited[at[0] + row * p.vocab + first + i] = words[i];
}
