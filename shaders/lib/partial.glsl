// What attention leaves for its merge: [rows][heads][chunks] of maximum, sum, head_dim values.

uint partial_place(uint head, uint chunk) {
    return ((gl_WorkGroupID.y * p.heads + head) * p.most_chunks + chunk) * (p.head_dim + 2u);
}

// Of a row; a padding row has none.
uint chunks_of(uint place) {
    return rows[place + kRowSlot] < 0 ? 0u : uint(rows[place + kRowPosition]) / 64u + 1u;
}
