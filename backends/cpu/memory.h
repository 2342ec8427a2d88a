// Host memory as the CPU backend hands it out: buffers and weights.
#pragma once

#include <memory>
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
    return reinterpret_cast<T*>(data + size_t(index) * size_bytes(t.dtype, size_t(t.row_stride)));
}

inline float* row_f32(const Tensor& t, int index) {
    return row<float>(t, index);
}

// Where weights lie: one after the other in large blocks of huge pages, in the order in which they
// are uploaded and later read. A block lives as long as anything in it.
class WeightArena {
  public:
    std::shared_ptr<std::byte> allocate(size_t bytes);  // zeroed, 64-byte aligned; throws Error

  private:
    std::shared_ptr<std::byte> block_;
    size_t used_ = 0, size_ = 0;
};

// Rows stacked from blocks. Floats that already have the type stay where they are (in the mapped
// file); quantised rows become strips (strips.h).
class CpuWeight final : public Weight {
  public:
    struct Block {
        const std::byte* data;  // [rows, cols], any alignment
        int first_row, rows;
    };
    CpuWeight(std::span<const WeightBlock> source, DType as, const Kernels& kernels, Pool& pool,
              WeightArena& arena);

    std::span<const Block> blocks() const { return blocks_; }  // of floats
    const std::byte* row(int index) const;                     // the same
    const std::byte* strip(int index) const;                   // of a quantised weight
    // One row as f32 [cols].
    void read_row(float* out, int index, const Kernels& kernels) const;

  private:
    void store_floats(const WeightBlock& from, const Kernels& kernels, Pool& pool,
                      WeightArena& arena);
    void store_strips(std::span<const WeightBlock> source, const Kernels& kernels, Pool& pool,
                      WeightArena& arena);

    std::vector<Block> blocks_;
    std::vector<std::shared_ptr<std::byte>> kept_;
};

}  // namespace aerie::cpu
