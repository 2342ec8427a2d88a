// Conversions between f32 and the 16-bit float types by integer arithmetic, equal on every host.
#include "core/dtype.h"

#include <bit>

namespace aerie {

float f16_to_f32(uint16_t bits) {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16;
    uint32_t exponent = (bits >> 10) & 31;
    uint32_t mantissa = bits & 1023;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
        if (mantissa == 0) return std::bit_cast<float>(sign);
        exponent = 1;
        while (!(mantissa & 1024)) {  // a denormal half is a normal float
            mantissa <<= 1;
            --exponent;
        }
        mantissa &= 1023;
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t f32_to_f16(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint16_t sign = uint16_t((bits >> 16) & 0x8000);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | 0x7e00;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00;  // rounds to infinity
    if (magnitude < 0x33000001u) return sign;            // at most half the smallest denormal
    const int exponent = int(magnitude >> 23) - 112;
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    // A normal half drops 13 bits, a denormal one more. A carry from rounding goes into the
    // exponent.
    const int shift = exponent > 0 ? 13 : 14 - exponent;
    uint32_t rounded = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
    rounded += rest > half || (rest == half && (rounded & 1));
    if (exponent > 0) rounded += uint32_t(exponent - 1) << 10;
    return sign | uint16_t(rounded);
}

float bf16_to_f32(uint16_t bits) {
    return std::bit_cast<float>(uint32_t(bits) << 16);
}

uint16_t f32_to_bf16(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16) | 0x40;
    return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

}  // namespace aerie
