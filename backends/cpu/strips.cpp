// Rows into strips of sixteen, and back.
#include "cpu/strips.h"

#include <cassert>
#include <cstring>

#include "cpu/memory.h"

namespace aerie::cpu {

namespace {

template <class Byte>
Byte* scale_of(Byte* panel, Quant type, int lane) {
    return panel + panel_bytes(type) - (kStripRows - size_t(lane)) * sizeof(Half);
}

// The four bytes of a row that hold elements 4 * step .. 4 * step + 3 (Q4: and the next four).
template <class Byte>
Byte* step_of(Byte* panel, int step, int lane) {
    return panel + (step * kStripRows + lane) * 4;
}

void put_group(std::byte* panel, int lane, const BlockQ8_0& group) {
    std::memcpy(scale_of(panel, Quant::Q8, lane), &group.scale, sizeof(Half));
    for (int k = 0; k < kGroup; ++k) step_of(panel, k / 4, lane)[k % 4] = std::byte(group.q[k]);
}

void put_group(std::byte* panel, int lane, const BlockQ4_0& group) {
    std::memcpy(scale_of(panel, Quant::Q4, lane), &group.scale, sizeof(Half));
    const auto nibble = [&](int k) {
        return k < kGroup / 2 ? group.q[k] & 15 : group.q[k - kGroup / 2] >> 4;
    };
    for (int k = 0; k < kGroup; k += 8)
        for (int i = 0; i < 4; ++i)
            step_of(panel, k / 8, lane)[i] = std::byte(nibble(k + i) | nibble(k + 4 + i) << 4);
}

void unpack_group(float* values, const std::byte* panel, Quant type, int lane) {
    uint16_t bits;
    std::memcpy(&bits, scale_of(panel, type, lane), sizeof(bits));
    const float scale = f16_to_f32(bits);
    for (int k = 0; k < kGroup; ++k) {
        int q = 0;
        if (type == Quant::Q8)
            q = int8_t(step_of(panel, k / 4, lane)[k % 4]);
        else
            q = (int(step_of(panel, k / 8, lane)[k % 4]) >> (k % 8 < 4 ? 0 : 4) & 15) - 8;
        values[k] = scale * float(q);
    }
}

template <class Element>
const Element& element(const std::byte* strip, int lane, int k) {
    return reinterpret_cast<const Element*>(strip)[k * kStripRows + lane];
}

}  // namespace

Quant quant_type(DType type) {
    assert(type == DType::Q8_0 || type == DType::Q4_0);
    return type == DType::Q8_0 ? Quant::Q8 : Quant::Q4;
}

size_t strip_bytes(DType type, int cols) {
    if (!is_quantised(type)) return size_t(cols) * kStripRows * size_bytes(type);
    return size_t(cols / kGroup) * panel_bytes(quant_type(type));
}

RowPacker::RowPacker(DType as, int cols, const Kernels& kernels)
    : as_(as), kernels_(kernels), values_(size_t(cols)), packed_(size_bytes(as, size_t(cols))) {}

void RowPacker::read_floats(const std::byte* row, DType from) {
    if (is_quantised(from))
        unpack(values_.data(), row, from, int(values_.size()));
    else
        kernels_.convert(values_.data(), Float::F32, row, float_type(from), values_.size());
}

template <class Element>
void RowPacker::pack_elements(std::byte* strip, int lane) {
    kernels_.convert(packed_.data(), float_type(as_), values_.data(), Float::F32, values_.size());
    const Element* row = reinterpret_cast<const Element*>(packed_.data());
    Element* to = reinterpret_cast<Element*>(strip) + lane;
    for (size_t k = 0; k < values_.size(); ++k) to[k * kStripRows] = row[k];
}

template <class Block>
void RowPacker::pack_groups(std::byte* strip, int lane, const std::byte* row, DType from) {
    const Quant type = quant_type(as_);
    if (from != as_) {
        read_floats(row, from);
        kernels_.pack_weights(packed_.data(), type, values_.data(), int(values_.size()));
        row = packed_.data();
    }
    for (size_t g = 0; g < values_.size() / kGroup; ++g) {
        Block block;
        std::memcpy(&block, row + g * sizeof(block), sizeof(block));
        put_group(strip + g * panel_bytes(type), lane, block);
    }
}

void RowPacker::pack(std::byte* strip, int lane, const std::byte* row, DType from) {
    if (as_ == DType::Q8_0) return pack_groups<BlockQ8_0>(strip, lane, row, from);
    if (as_ == DType::Q4_0) return pack_groups<BlockQ4_0>(strip, lane, row, from);
    read_floats(row, from);
    size_bytes(as_) == 4 ? pack_elements<uint32_t>(strip, lane)
                         : pack_elements<uint16_t>(strip, lane);
}

void unpack_row(float* row, const std::byte* strip, DType type, int lane, int cols) {
    if (is_quantised(type)) {
        const Quant quant = quant_type(type);
        for (int g = 0; g < cols / kGroup; ++g)
            unpack_group(row + g * kGroup, strip + size_t(g) * panel_bytes(quant), quant, lane);
        return;
    }
    for (int k = 0; k < cols; ++k)
        row[k] = type == DType::F32   ? element<float>(strip, lane, k)
                 : type == DType::F16 ? f16_to_f32(element<uint16_t>(strip, lane, k))
                                      : bf16_to_f32(element<uint16_t>(strip, lane, k));
}

}  // namespace aerie::cpu
