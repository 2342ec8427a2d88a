// Shared by attention.comp and attention_fetch.comp.

// The KV slot of a position that the row at `place` attends to.
uint slot_of(uint place, uint position) {
    uint row_position = uint(rows[place + kRowPosition]), prefix = uint(rows[place + kRowPrefix]);
    if (position < prefix) return position;
    if (position < row_position) return uint(rows[place + kRowPath + position - prefix]);
    return uint(rows[place + kRowSlot]);
}

// The sum of 16 lanes, halved in a fixed order (core/arithmetic.h).
float sum_of_lanes(float lanes[16]) {
    precise float sums[16] = lanes;
    [[unroll]] for (uint left = 8u; left > 0u; left /= 2u) EACH(left, i) sums[i] = sums[i] + sums[i + left];
    return sums[0];
}
