// Rows of floats, or of I8G32 groups: the including shader defines value(row, i), an element of
// the output. A unit is one element or one group.
layout(constant_id = 0) const bool kQuantise = false;

WRITES(0, uint, out_words);

float value(uint row, uint i);

const float kLeastLargest = 7.888609052210118e-31;  // 2^-100: smaller groups are zero

void write_group(uint to, uint row, uint group) {
    float values[32];
    uint largest_bits = 0u;
    for (uint i = 0u; i < 32u; ++i) {
        values[i] = value(row, group * 32u + i);
        largest_bits = max(largest_bits, floatBitsToUint(values[i]) & 0x7fffffffu);
    }
    bool sound = largest_bits < 0x7f800000u;
    float largest = uintBitsToFloat(largest_bits);
    bool used = sound && largest >= kLeastLargest;
    precise float step = largest * 0.007874015718698502;  // 1 / 127
    precise float inverse = 127.0 * reciprocal(largest);
    out_words[to] = floatBitsToUint(used ? step : sound ? 0.0 : kNan);
    int sums[2] = {0, 0};
    for (uint word = 0u; word < 8u; ++word) {
        uint packed = 0u;
        for (uint i = 0u; i < 4u; ++i) {
            precise float scaled = values[word * 4u + i] * inverse;
            // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
            precise float rounded = clamp(scaled, -127.0, 127.0) + 12582912.0;
            int step = int(floatBitsToUint(rounded) << 24) >> 24;
            packed |= (uint(step) & 0xffu) << (8u * i);
            sums[word / 4u] += step;
        }
        out_words[to + 2u + word] = used ? packed : 0u;
    }
    out_words[to + 1u] = used ? (uint(sums[0]) & 0xffffu) | uint(sums[1]) << 16 : 0u;
}

// Unit `unit` of what value() knows, as unit `to_unit` of the row.
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
