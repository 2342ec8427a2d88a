// Gumbel noise of a position's tokens, bit for bit gumbel() of core/rng.cpp.
#include "cpu/isa_kernels.h"
#include "cpu/vector_math.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

struct Words {
    U32x16 w[4];
};

Words philox(uint64_t key, Words c) {
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const WideProduct a = multiply(c.w[0], 0xD2511F53u), b = multiply(c.w[2], 0xCD9E8D57u);
        c = {{b.high ^ c.w[1] ^ splat_u32(k0), b.low, a.high ^ c.w[3] ^ splat_u32(k1), a.low}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

F32x16 unit(U32x16 bits) {
    const F32x16 high = to_float(shift_right<16>(bits));
    const F32x16 low = to_float(bits & splat_u32(0xffffu));
    return ((high * splat(65536.0f) + low) + splat(0.5f)) * splat(0x1p-32f);
}

F32x16 gumbel(U32x16 bits) {
    const F32x16 zero = splat(0.0f), u = unit(bits);
    const Split rest = split(unit(bits ^ splat_u32(~0u)));
    const Mask16 small = u < splat(0.29289f);
    const F32x16 f = select(small, zero - u, rest.f);
    const F32x16 log_rest = log_parts(f, select(small, zero, rest.exponent));
    const Split exponential = split(zero - log_rest);
    return zero - log_parts(exponential.f, exponential.exponent);
}

}  // namespace

void noise(float* out, uint64_t seed, int position, int first, int count) {
    const U32x16 zero = splat_u32(0), place = splat_u32(uint32_t(position));
    for (int token = 0; token < count; token += 64) {
        const U32x16 counter = splat_u32(uint32_t((first + token) / 4)) + iota();
        const Words words = philox(seed, {{counter, place, zero, zero}});
        for (int i = 0; i < 4 && token + i * kLanes < count; ++i) {
            const int left = count - (token + i * kLanes);
            store_some(out + token + i * kLanes, gumbel(words.w[i]), left < kLanes ? left : kLanes);
        }
    }
}

}  // namespace aerie::cpu::AERIE_ISA
