// The scalar definition of the sampling noise; the vector code of backends must give the same bits.
#include "core/rng.h"

#include <bit>

namespace aerie {

std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> c) {
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t(0xD2511F53u) * c[0], b = uint64_t(0xCD9E8D57u) * c[2];
        c = {uint32_t(b >> 32) ^ c[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ k1,
             uint32_t(a)};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

namespace {

// (bits + 1/2) / 2^32, with full resolution near 0. Splitting the bits in halves makes the
// conversion exact.
float unit(uint32_t bits) {
    const float value = float(bits >> 16) * 65536.0f + float(bits & 0xffff);
    return (value + 0.5f) * 0x1p-32f;
}

// log(1 + f) + exponent * ln 2 for f in [-0.2929, 0.4143), with the coefficients of Cephes's logf;
// multiplies and adds only.
float log_parts(float f, float exponent) {
    const float z = f * f;
    float p = 7.0376836292e-2f;
    for (float coefficient :
         {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
          -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
        p = p * f + coefficient;
    float y = f * (z * p);
    y = y + exponent * -2.12194440e-4f;
    y = y + -0.5f * z;
    return (f + y) + exponent * 0.693359375f;
}

// log(x) for a positive, normal x.
float log_positive(float x) {
    // Split so that the mantissa is in [sqrt(1/2), sqrt(2)).
    const uint32_t shifted = std::bit_cast<uint32_t>(x) - 0x3f3504f3u;
    const int32_t exponent = int32_t(shifted) >> 23;
    const float mantissa = std::bit_cast<float>((shifted & 0x007fffffu) + 0x3f3504f3u);
    return log_parts(mantissa - 1.0f, float(exponent));
}

}  // namespace

float gumbel_of(uint32_t word) {
    // Computes -log(1 - u). For a small u, 1 - u would be rounded, so the series runs in u itself.
    const float u = unit(word);
    const float exponential = -(u < 0.29289f ? log_parts(-u, 0.0f) : log_positive(unit(~word)));
    return -log_positive(exponential);
}

float gumbel(uint64_t seed, int position, int token) {
    const auto words =
        philox(seed, {uint32_t(token / 64 * 16 + token % 16), uint32_t(position), 0, 0});
    return gumbel_of(words[(token / 16) % 4]);
}

double uniform(uint64_t seed, int position, Purpose purpose, int index) {
    const auto words = philox(seed, {uint32_t(index), uint32_t(position), uint32_t(purpose), 0});
    return double((uint64_t(words[0]) << 32 | words[1]) >> 11) * 0x1p-53;
}

}  // namespace aerie
