// Rotates queries and keys, and stores rows of the KV cache. The including shader has kHalfCache
// and binds `pages`, `k_cache` and `v_cache`.
#include "half.glsl"
#include "rows.glsl"

// Store elements i (even) and i + 1 of a key or value, in the cache row at `to`.
void store_k(uint to, uint i, vec2 pair) {
    if (kHalfCache) {
        k_cache[to + i / 2u] = two_halves(pair.x, pair.y);
    } else {
        k_cache[to + i] = floatBitsToUint(pair.x);
        k_cache[to + i + 1u] = floatBitsToUint(pair.y);
    }
}
void store_v(uint to, uint i, vec2 pair) {
    if (kHalfCache) {
        v_cache[to + i / 2u] = two_halves(pair.x, pair.y);
    } else {
        v_cache[to + i] = floatBitsToUint(pair.x);
        v_cache[to + i + 1u] = floatBitsToUint(pair.y);
    }
}

// Rotates two elements, `low`, with the two that lie half a head behind them, `high`.
void rotate(inout vec2 low, inout vec2 high, vec2 cosine, vec2 sine) {
    precise vec2 a = low * cosine - high * sine;
    precise vec2 b = high * cosine + low * sine;
    low = a;
    high = b;
}
