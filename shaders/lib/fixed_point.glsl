// Sums of numbers in [0, 1] that do not depend on the order of the terms: 64-bit integers (low,
// high) in units of 2^-44. A million terms fit.

uvec2 fixed_of(float x) {
    uint word = floatBitsToUint(x), exponent = word >> 23;
    uint mantissa = (word & 0x007fffffu) | 0x00800000u;
    if (exponent >= 106u) {
        uint left = exponent - 106u;  // at most 21
        return uvec2(mantissa << left, left > 8u ? mantissa >> (32u - left) : 0u);
    }
    uint right = 106u - exponent;
    return uvec2(right > 24u ? 0u : (mantissa + (1u << (right - 1u))) >> right, 0u);
}

float float_of(uvec2 fixed_sum) {
    precise float units = float(fixed_sum.y) * 4294967296.0 + float(fixed_sum.x);
    precise float x = units * 5.6843418860808015e-14;
    return x;
}

uvec2 sum_of(uvec2 a, uvec2 b) {
    uint carry, low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

uvec2 difference_of(uvec2 a, uvec2 b) {
    uint borrow, low = usubBorrow(a.x, b.x, borrow);
    return uvec2(low, a.y - b.y - borrow);
}

bool at_least(uvec2 a, uvec2 b) {
    return a.y > b.y || (a.y == b.y && a.x >= b.x);
}

// fixed_sum * share, for a share below 1: rounded up, at least one unit.
uvec2 share_of(uvec2 fixed_sum, float share) {
    const uvec2 one = uvec2(1u, 0u);
    uint word = floatBitsToUint(share), exponent = word >> 23;
    if (exponent == 0u || word >= 0x80000000u) return one;
    uint mantissa = (word & 0x007fffffu) | 0x00800000u, right = 150u - exponent;  // 24 .. 149
    uint product[4], carry, high;
    umulExtended(fixed_sum.x, mantissa, high, product[0]);
    umulExtended(fixed_sum.y, mantissa, product[2], product[1]);
    product[1] = uaddCarry(product[1], high, carry);
    product[2] += carry;
    product[3] = 0u;
    uint lost = 0u;
    for (; right >= 32u; right -= 32u) {
        lost |= product[0];
        for (uint i = 0u; i < 3u; ++i) product[i] = product[i + 1u];
    }
    uvec2 result = uvec2(product[0], product[1]);
    if (right > 0u) {
        lost |= product[0] << (32u - right);
        result.x = (product[0] >> right) | (product[1] << (32u - right));
        result.y = (product[1] >> right) | (product[2] << (32u - right));
    }
    if (lost != 0u) result = sum_of(result, one);
    return result == uvec2(0u) ? one : result;
}

// Adds to a sum in shared or buffer memory, which no GLSL function can take as an argument. Several
// invocations may add at once: the one that makes the low word overflow carries.
#define ADD_FIXED(low, high, term)                                        \
    {                                                                     \
        uvec2 added = term;                                               \
        uint earlier = atomicAdd(low, added.x);                           \
        uint carried = added.y + (earlier + added.x < earlier ? 1u : 0u); \
        if (carried != 0u) atomicAdd(high, carried);                      \
    }
