// What attention leaves for its merge: [rows][heads][chunks] of maximum, sum, head_dim values. The
// first chunk of a row is the one that has the first position that it sees.

// `row` of this block of rows.
uint partial_place(uint row, uint head, uint chunk) {
    return ((row * p.heads + head) * p.most_chunks + chunk) * (p.head_dim + 2u);
}

// The first position that a row sees.
uint first_seen(uint place) {
    uint length = uint(rows[place + kRowPosition]) + 1u;
    return length > p.window ? length - p.window : 0u;
}

// That a row sees anything of; a padding row has none.
uint chunks_of(uint place) {
    if (rows[place + kRowSlot] < 0) return 0u;
    return uint(rows[place + kRowPosition]) / 64u - first_seen(place) / 64u + 1u;
}
