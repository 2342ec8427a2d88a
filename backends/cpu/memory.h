// Host memory as the CPU backend hands it out: buffers and weights.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace aerie::cpu {

Float float_type(DType type);  // asserts that it is one

// A zeroed block, 64-byte aligned; pages that nobody touches cost nothing.
class CpuMemory final : public Memory {
  public:
    explicit CpuMemory(size_t size);  // throws Error
    ~CpuMemory() override;
    CpuMemory(const CpuMemory&) = delete;
    CpuMemory& operator=(const CpuMemory&) = delete;

    std::byte* data() const { return data_; }

  private:
    void* block_ = nullptr;
    std::byte* data_ = nullptr;
};

template <class T>
T* row(const Tensor& t, int index) {
    std::byte* data = static_cast<CpuMemory*>(t.memory)->data() + t.offset_bytes;
    return reinterpret_cast<T*>(data + size_t(index) * size_t(t.row_stride) * size_bytes(t.dtype));
}

inline float* row_f32(const Tensor& t, int index) {
    return row<float>(t, index);
}

// Blocks of rows below each other. Those that already have the type stay where they are.
class CpuWeight final : public Weight {
  public:
    struct Block {
        const std::byte* data;  // [rows, cols], any alignment
        int first_row, rows;
    };
    CpuWeight(std::span<const WeightBlock> blocks, DType as, const Kernels& kernels, Pool& pool);

    std::span<const Block> blocks() const { return blocks_; }
    const std::byte* row(int index) const;

  private:
    std::vector<Block> blocks_;
    std::vector<Buffer> converted_;
};

}  // namespace aerie::cpu
