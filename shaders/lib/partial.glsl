// The partial results of attention: [rows][heads][chunks] of the maximum of S, the sum of P = exp(S
// - maximum), and head_dim elements of P V. A row's chunks are counted from the one with the first
// position that the row attends to.

// Where a partial result begins; `row` is counted from the block's first row.
uint partial_place(uint row, uint head, uint chunk) {
    return ((row * p.heads + head) * p.most_chunks + chunk) * (p.head_dim + 2u);
}

// The first position that the row at `place` attends to.
uint first_seen(uint place) {
    uint length = uint(rows[place + kRowPosition]) + 1u;
    return length > p.window ? length - p.window : 0u;
}

// The chunks that the row attends to any position of; a padding row has none.
uint chunks_of(uint place) {
    if (rows[place + kRowSlot] < 0) return 0u;
    return uint(rows[place + kRowPosition]) / 64u - first_seen(place) / 64u + 1u;
}
