// Rows of quantised blocks into strips of sixteen rows.
#include "cpu/strips.h"

#include <cassert>
#include <cstring>

namespace aerie::cpu {

namespace {

constexpr int kPlace[] = {0, 2, 1, 3};  // of four Q8 elements in their bytes

template <class Byte>
Byte* scale_of(Byte* panel, Quant type, int lane) {
    return panel + panel_bytes(type) - (kStripRows - size_t(lane)) * sizeof(Half);
}

int nibble(const BlockQ4_0& block, int k) {
    return k < kGroup / 2 ? block.q[k] & 15 : block.q[k - kGroup / 2] >> 4;
}

// The four bytes of a row that hold elements 4 * step .. 4 * step + 3 (Q4: and the next four).
template <class Byte>
Byte* step_of(Byte* panel, int step, int lane) {
    return panel + (step * kStripRows + lane) * 4;
}

}  // namespace

Quant quant_type(DType type) {
    assert(type == DType::Q8_0 || type == DType::Q4_0);
    return type == DType::Q8_0 ? Quant::Q8 : Quant::Q4;
}

void put_row(std::byte* strip, int lane, const BlockQ8_0* row, int groups) {
    for (int g = 0; g < groups; ++g, strip += panel_bytes(Quant::Q8)) {
        std::memcpy(scale_of(strip, Quant::Q8, lane), &row[g].scale, sizeof(Half));
        for (int k = 0; k < kGroup; ++k)
            step_of(strip, k / 4, lane)[kPlace[k % 4]] = std::byte(row[g].q[k]);
    }
}

void put_row(std::byte* strip, int lane, const BlockQ4_0* row, int groups) {
    for (int g = 0; g < groups; ++g, strip += panel_bytes(Quant::Q4)) {
        std::memcpy(scale_of(strip, Quant::Q4, lane), &row[g].scale, sizeof(Half));
        for (int k = 0; k < kGroup; k += 8)
            for (int i = 0; i < 4; ++i)
                step_of(strip, k / 8, lane)[i] =
                    std::byte(nibble(row[g], k + i) | nibble(row[g], k + 4 + i) << 4);
    }
}

void unpack_row(float* row, const std::byte* strip, Quant type, int lane, int groups) {
    const std::byte* panel = strip;
    for (int g = 0; g < groups; ++g, panel += panel_bytes(type), row += kGroup) {
        uint16_t bits;
        std::memcpy(&bits, scale_of(panel, type, lane), sizeof(bits));
        const float scale = f16_to_f32(bits);
        for (int k = 0; k < kGroup; ++k) {
            int q = 0;
            if (type == Quant::Q8)
                q = int8_t(step_of(panel, k / 4, lane)[kPlace[k % 4]]);
            else
                q = (int(step_of(panel, k / 8, lane)[k % 4]) >> (k % 8 < 4 ? 0 : 4) & 15) - 8;
            row[k] = scale * float(q);
        }
    }
}

}  // namespace aerie::cpu
