// Rows of any type into the layout of a weight, and rows of a weight as floats.
#include "cuda/device/packed.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

// Elements of one group as floats; beyond the row's end 0.
__device__ void read_group(float (&values)[kGroup], const PackRows& task, int row, int group) {
    const std::byte* rows = task.from;
    const size_t first = size_t(row - task.first_row) * size_t(task.cols) + size_t(group) * kGroup;
    const int count = min(kGroup, task.cols - group * kGroup);
    if (task.from_type == DType::Q8_0) {
        const BlockQ8_0& block = reinterpret_cast<const BlockQ8_0*>(rows)[first / kGroup];
        for (int i = 0; i < kGroup; ++i) values[i] = from_f16(block.scale) * float(block.q[i]);
        return;
    }
    if (task.from_type == DType::Q4_0) {
        const BlockQ4_0& block = reinterpret_cast<const BlockQ4_0*>(rows)[first / kGroup];
        for (int i = 0; i < kGroup; ++i) {
            const int nibble = i < 16 ? block.q[i % 16] & 15 : block.q[i % 16] >> 4;
            values[i] = from_f16(block.scale) * float(nibble - 8);
        }
        return;
    }
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

// The steps of a group, taken over where the type stays.
__device__ uint16_t read_steps(int (&steps)[kGroup], const PackRows& task, int row, int group) {
    const size_t index = size_t(row - task.first_row) * size_t(task.cols / kGroup) + size_t(group);
    if (task.from_type != task.to_type) {
        float values[kGroup];
        read_group(values, task, row, group);
        return task.to_type == DType::Q8_0 ? pack_q8(steps, values) : pack_q4(steps, values);
    }
    if (task.to_type == DType::Q8_0) {
        const BlockQ8_0& block = reinterpret_cast<const BlockQ8_0*>(task.from)[index];
        for (int i = 0; i < kGroup; ++i) steps[i] = block.q[i];
        return block.scale;
    }
    const BlockQ4_0& block = reinterpret_cast<const BlockQ4_0*>(task.from)[index];
    for (int i = 0; i < kGroup; ++i)
        steps[i] = (i < 16 ? block.q[i % 16] & 15 : block.q[i % 16] >> 4) - 8;
    return block.scale;
}

__device__ void put_steps(const PackRows& task, int row, int group) {
    int steps[kGroup];
    const uint16_t scale = read_steps(steps, task, row, group);
    const int place = task.order.place(row);
    std::byte* block = task.to + quant_block_place(task.to_type, place, group, task.cols);
    *reinterpret_cast<uint16_t*>(block + scale_place(task.to_type, place, group)) = scale;
    uint8_t* bytes = reinterpret_cast<uint8_t*>(block);
    for (int k = 0; k < kGroup; ++k) {
        if (task.to_type == DType::Q8_0) {
            bytes[q8_place(place, group, k)] = uint8_t(steps[k]);
        } else {
            const int shift = place % kTileRows < 8 ? 0 : 4;
            bytes[q4_place(place, group, k)] |= uint8_t((steps[k] & 15) << shift);
        }
    }
}

__device__ __host__ inline int first_tile(const PackRows& task) {
    return task.order.first_row(task.first_row) / task.order.step;
}

// A thread takes places g and g + 8 of a tile, whose steps share bytes, and one group.
__global__ void pack_kernel(PackRows task) {
    const int groups = tiles_of(task.cols, kGroup);
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int pair = i / groups, group = i % groups;
    const int first = (first_tile(task) + pair / 8) * kTileRows + pair % 8;
    for (int place = first; place <= first + 8; place += 8) {
        const int row = task.order.row(place);
        if (row < task.first_row || row >= task.first_row + task.count) continue;
        if (is_quantised(task.to_type))
            put_steps(task, row, group);
        else
            put_floats(task, row, group);
    }
}

}  // namespace

void pack_rows(const PackRows& task, Queue& queue) {
    const int after = task.order.first_row(task.first_row) + task.count;
    const int tiles = tiles_of(after, task.order.step) - first_tile(task);
    const int threads = tiles * 8 * tiles_of(task.cols, kGroup);
    launch(pack_kernel, {dim3(unsigned(tiles_of(threads, 128))), dim3(128), queue, "pack_rows"},
           task);
}

}  // namespace aerie::cuda
