// Packs rows of any type into the layout of a weight (device/packed.cuh).
#include "core/take_apart.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

// BlockParts is large, so functions fill that of their caller.

// Takes apart a block, if its type is one of these.
template <class... Blocks>
__device__ void take_one(BlockParts& parts, DType type, const std::byte* unit) {
    ((Blocks::kType == type ? take_apart(parts, *reinterpret_cast<const Blocks*>(unit)) : void()),
     ...);
}
// Takes apart the unit of an input row that a group belongs to.
__device__ void read_unit(BlockParts& parts, const PackRows& task, int row, int group) {
    const size_t units = size_t(task.cols / unit_elements(task.from_type));
    const size_t unit = size_t(row - task.first_row) * units +
                        size_t(group * kGroup / unit_elements(task.from_type));
    take_one<BlockQ8_0, BlockQ4_0, BlockQ5_0, BlockQ5_1, BlockQ4_K, BlockQ5_K, BlockQ6_K>(
        parts, task.from_type, task.from + unit * unit_bytes(task.from_type));
}

// The elements of one group as floats; 0 beyond the row's end.
__device__ void read_group(float (&values)[kGroup], const PackRows& task, int row, int group) {
    if (is_quantised(task.from_type)) {
        BlockParts parts;
        read_unit(parts, task, row, group);
        const int first = group * kGroup % unit_elements(task.from_type);
        for (int i = 0; i < kGroup; ++i) {
            const int part = (first + i) / kScaled;
            values[i] =
                (from_f16(parts.scale) * float(parts.scales[part])) * float(parts.q[first + i]) -
                from_f16(parts.least) * float(parts.leasts[part]);
        }
        return;
    }
    const std::byte* rows = task.from;
    const size_t first = size_t(row - task.first_row) * size_t(task.cols) + size_t(group) * kGroup;
    const int count = min(kGroup, task.cols - group * kGroup);
    const uint16_t* words = reinterpret_cast<const uint16_t*>(rows) + first;
    for (int i = 0; i < kGroup; ++i) {
        values[i] = 0;
        if (i >= count) continue;
        values[i] = task.from_type == DType::F32   ? reinterpret_cast<const float*>(rows)[first + i]
                    : task.from_type == DType::F16 ? from_f16(words[i])
                                                   : __uint_as_float(unsigned(words[i]) << 16);
    }
}

__device__ uint16_t to_bf16(float value) {
    const unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40);
    return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

__device__ void put_floats(const PackRows& task, int row, int group) {
    float values[kGroup];
    read_group(values, task, row, group);
    const int place = task.order.place(row);
    for (int i = 0; i < min(kGroup, task.cols - group * kGroup); ++i) {
        const int col = group * kGroup + i;
        if (task.to_type == DType::F32)
            reinterpret_cast<float*>(task.to)[f32_place(place, col, task.cols)] = values[i];
        else
            reinterpret_cast<uint16_t*>(task.to)[float_place(place, col, task.cols)] =
                task.to_type == DType::F16 ? to_f16(values[i]) : to_bf16(values[i]);
    }
}

__device__ void pack_group(BlockParts& parts, const PackRows& task, int row, int group) {
    float values[kGroup];
    int steps[kGroup];
    read_group(values, task, row, group);
    parts.scale = task.to_type == DType::Q8_0 ? pack_q8(steps, values) : pack_q4(steps, values);
    for (int i = 0; i < kGroup; ++i) parts.q[i] = int8_t(steps[i]);
}

__device__ void put_bits(std::byte* block, const BitsPlace& place, int value) {
    block[place.byte] |= std::byte(value << place.shift);
}

// Stores the 6-bit scales and mins of all groups, as BlockQ4_K has them.
__device__ void put_six_bits(uint8_t* to, const BlockParts& parts) {
    for (int j = 0; j < 4; ++j) {
        const int scale = parts.scales[2 * j + 8], least = parts.leasts[2 * j + 8];
        to[j] = uint8_t(parts.scales[2 * j] | scale >> 4 << 6);
        to[4 + j] = uint8_t(parts.leasts[2 * j] | least >> 4 << 6);
        to[8 + j] = uint8_t((scale & 15) | (least & 15) << 4);
    }
}

__device__ void put_scales(std::byte* block, const QuantLayout& layout, int place, int group,
                           const BlockParts& parts) {
    const auto put_f16 = [&](int at, uint16_t bits) {
        *reinterpret_cast<uint16_t*>(block + at) = bits;
    };
    const int at = scale_place(layout, place, group);
    uint8_t* of_row = reinterpret_cast<uint8_t*>(block + row_scales_place(layout, place));
    put_f16(at, parts.scale);
    switch (layout.scales) {
        case Scales::of_groups:
            return;
        case Scales::leasts_of_groups:
            return put_f16(at + kMinBytes, parts.least);
        case Scales::six_bits:
            put_f16(at + 2, parts.least);
            return put_six_bits(of_row + 4, parts);
        case Scales::of_halves:
            for (int s = 0; s < kSuperBlock / kScaled; ++s) of_row[s] = uint8_t(parts.scales[s]);
    }
}

// Packs a unit of the type that the rows are stored in, from `group` on.
__device__ void put_unit(const PackRows& task, int row, int group) {
    const QuantLayout layout = layout_of(task.to_type);
    BlockParts parts;
    if (task.from_type == task.to_type)
        read_unit(parts, task, row, group);
    else
        pack_group(parts, task, row, group);
    const int place = task.order.place(row), in_block = group % layout.groups;
    std::byte* block = task.to + quant_block_place(layout, place, group, task.cols);
    put_scales(block, layout, place, in_block, parts);
#pragma unroll 1  // unrolled, a whole block would be in registers
    for (int i = 0; i < unit_elements(task.to_type); ++i) {
        const int g = in_block + i / kGroup, k = i % kGroup;
        const int code = parts.q[i] & ((1 << layout.bits()) - 1);
        put_bits(block, low_bits_at(layout, place, g, k), code & ((1 << layout.low_bits) - 1));
        if (layout.high_bits > 0)
            put_bits(block, high_bits_at(layout, place, g, k), code >> layout.low_bits);
    }
}

__device__ __host__ inline int first_tile(const PackRows& task) {
    return task.order.first_row(task.first_row) / task.order.step;
}

// The groups that one thread packs: those of a block, which share bytes.
constexpr int together(DType type) {
    return is_quantised(type) ? layout_of(type).groups : 1;
}

// A thread packs rows g and g + 8 of a tile, which share bytes too.
__global__ void pack_kernel(PackRows task) {
    const int groups = tiles_of(task.cols, kGroup), each = together(task.to_type);
    const int blocks = tiles_of(groups, each);
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int pair = i / blocks, first_group = i % blocks * each;
    const int first = (first_tile(task) + pair / 8) * kTileRows + pair % 8;
    for (int place = first; place <= first + 8; place += 8) {
        const int row = task.order.row(place);
        if (row < task.first_row || row >= task.first_row + task.count) continue;
        if (is_float(task.to_type)) {
            put_floats(task, row, first_group);
            continue;
        }
        const int after = min(first_group + each, groups);
        for (int g = first_group; g < after; g += unit_elements(task.to_type) / kGroup)
            put_unit(task, row, g);
    }
}

}  // namespace

bool packs_rows(DType from, DType to) {
    return from == to || is_float(to) || to == DType::Q8_0 || to == DType::Q4_0;
}

void pack_rows(const PackRows& task, Queue& queue) {
    const int after = task.order.first_row(task.first_row) + task.count;
    const int tiles = tiles_of(after, task.order.step) - first_tile(task);
    const int threads = tiles * 8 * tiles_of(task.cols, kGroup * together(task.to_type));
    launch(pack_kernel, {dim3(unsigned(tiles_of(threads, 128))), dim3(128), queue, "pack_rows"},
           task);
}

}  // namespace aerie::cuda
