// The scalar definitions. Like all code, they are compiled without contraction.
#include "core/arithmetic.h"

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace aerie {

float reciprocal(float x) {
    float r = std::bit_cast<float>(0x7ef311c7u - std::bit_cast<uint32_t>(x));
    for (int i = 0; i < 3; ++i) r = r * (2.0f - x * r);
    return r;
}

float inverse_sqrt(float x) {
    const float half = 0.5f * x;
    float r = std::bit_cast<float>(0x5f3759dfu - (std::bit_cast<uint32_t>(x) >> 1));
    for (int i = 0; i < 3; ++i) r = r * (1.5f - (half * r) * r);
    return r;
}

float exp_of(float x) {
    const float clamped = 88.0f < x ? 88.0f : x;
    // Adding 1.5 * 2^23 rounds to an integer n, which is then in the low bits.
    constexpr float kMagic = 12582912.0f;
    const float shifted = clamped * 1.44269504f + kMagic;
    const float n = shifted - kMagic;
    const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    for (float coefficient :
         {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
        p = p * r + coefficient;
    const float power = (p * (r * r) + r) + 1.0f;
    const float scale = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127) << 23);
    return x < -87.3f ? 0.0f : power * scale;
}

float silu(float x) {
    const float least = x < -80.0f ? -80.0f : x;
    return x * reciprocal(1.0f + exp_of(0.0f - least));
}

}  // namespace aerie
