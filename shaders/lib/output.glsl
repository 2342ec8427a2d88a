// Writes rows of floats, or of I8G32 groups. The including shader defines value(row, i), an element
// of the output. A unit is one element or one group.
layout(constant_id = 0) const bool kQuantise = false;

WRITES(0, uint, out_words);

float value(uint row, uint i);

#include "quantise.glsl"

void write_group(uint to, uint row, uint group) {
    float values[32];
    uint largest_bits = 0u;
    for (uint i = 0u; i < 32u; ++i) {
        values[i] = value(row, group * 32u + i);
        largest_bits = max(largest_bits, floatBitsToUint(values[i]) & 0x7fffffffu);
    }
    float inverse = steps_of_one(largest_bits);
    out_words[to] = step_word(largest_bits);
    int sums[2] = {0, 0};
    for (uint word = 0u; word < 8u; ++word) {
        uint packed = 0u;
        for (uint i = 0u; i < 4u; ++i) {
            int steps = quant_of(values[word * 4u + i], inverse);
            packed |= (uint(steps) & 0xffu) << (8u * i);
            sums[word / 4u] += steps;
        }
        out_words[to + 2u + word] = is_used(largest_bits) ? packed : 0u;
    }
    out_words[to + 1u] = is_used(largest_bits) ? sums_word(sums[0], sums[1]) : 0u;
}

// Writes unit `unit` of value() as unit `to_unit` of the row.
void write_part(uint row, uint unit, uint to_unit, uint out_stride) {
    uint to = at[0] + row * out_stride;
    if (kQuantise)
        write_group(to + to_unit * 10u, row, unit);
    else
        out_words[to + to_unit] = floatBitsToUint(value(row, unit));
}

void write_unit(uint row, uint unit, uint out_stride) {
    write_part(row, unit, unit, out_stride);
}
