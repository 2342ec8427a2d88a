// The key of a float is an integer in the order of floats: NaN is 0, then come -inf up to +inf; -0
// is 0. Drivers may flush denormals and forget NaN where they compare floats, but not where they
// compare keys.
const uint kLowestKey = 0x007fffffu;   // the key of -inf
const uint kHighestKey = 0xff800000u;  // the key of +inf
const uint kNoId = 0xffffffffu;        // as int: -1

uint key_of(float x) {
    uint word = floatBitsToUint(x), magnitude = word & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0u;
    if (magnitude == 0u) return 0x80000000u;
    return word == magnitude ? word | 0x80000000u : ~word;
}

float value_of(uint key) {
    return uintBitsToFloat(key >= 0x80000000u ? key & 0x7fffffffu : ~key);
}

bool is_finite_key(uint key) {
    return key > kLowestKey && key < kHighestKey;
}

// Whether (key, id) a comes before b: the larger key first, then the lower id.
bool before(uvec2 a, uvec2 b) {
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}
