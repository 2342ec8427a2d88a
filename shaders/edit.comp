#version 450
// Edits of logits in place. The invocation of the first edit of a token applies them all, in order:
// those of every row (they come first), then the row's own.
#extension GL_GOOGLE_include_directive : require
#include "lib/io.glsl"
#include "lib/quotient.glsl"

layout(local_size_x = 64) in;
PARAMS(EditParams);
WRITES(0, float, edited);  // [rows, vocab]
READS(1, int, edits);      // [count][4]: row, token, divide, add

bool concerns(uint edit, int row, int token) {
    int edit_row = edits[at[1] + edit * 4u];
    return edits[at[1] + edit * 4u + 1u] == token && (edit_row == row || edit_row == -1);
}

float edited_by(uint edit, float logit) {
    float divide = intBitsToFloat(edits[at[1] + edit * 4u + 2u]);
    float add = intBitsToFloat(edits[at[1] + edit * 4u + 3u]);
    uint word = floatBitsToUint(logit);
    if ((word & 0x7fffffffu) > 0x7f800000u) return logit;
    precise float scaled = logit * divide;
    if (word != 0u && word < 0x80000000u) scaled = quotient(logit, divide);
    precise float sum = scaled + add;
    return sum;
}

void main() {
    uint first = gl_GlobalInvocationID.x;
    if (first >= p.edits) return;
    int row = int(p.first_row + gl_WorkGroupID.y), token = edits[at[1] + first * 4u + 1u];
    if (!concerns(first, row, token)) return;
    for (uint i = 0u; i < first; ++i)
        if (concerns(i, row, token)) return;
    uint place = at[0] + gl_WorkGroupID.y * p.vocab + uint(token);
    float logit = edited[place];
    for (uint i = first; i < p.edits; ++i)
        if (concerns(i, row, token)) logit = edited_by(i, logit);
    edited[place] = logit;
}
