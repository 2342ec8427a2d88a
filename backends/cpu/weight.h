// Weights of the CPU backend: strips for matrices that are multiplied, plain rows for float tables
// that are only looked up.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace aerie::cpu {

// Memory of weights: they lie one after the other in large blocks of huge pages, in the order in
// which they are uploaded and later read. A block lives as long as anything in it.
class WeightArena {
  public:
    std::shared_ptr<std::byte> allocate(size_t bytes);  // zeroed, 64-byte aligned; throws Error

  private:
    std::shared_ptr<std::byte> block_;
    size_t used_ = 0, size_ = 0;
};

// Rows of one type that a matmul reads: all of a segment, or those of one expert.
struct CpuMatrix {
    DType dtype;
    int rows, cols;
    const std::byte* data;  // strips

    // The strip with sixteen rows from 16 * index on; see kernels.h.
    const std::byte* strip(int index) const;
};

// A segment of a weight. The rows of each expert begin with a strip.
class CpuSegment {
  public:
    CpuSegment(const WeightSegment& segment, std::span<const WeightBlock> blocks, WeightUse use,
               const Kernels& kernels, Pool& pool, WeightArena& arena);

    const WeightSegment& place() const { return place_; }
    DType dtype() const { return place_.dtype; }
    int rows() const { return place_.rows; }

    // All of the segment, or one expert of it. Not for tables that are kept as rows.
    CpuMatrix matrix(int index = 0) const;
    // Reads one row as f32 [cols]; not for experts.
    void read_row(float* out, int index, const Kernels& kernels) const;

  private:
    void copy_rows(std::span<const WeightBlock> blocks, Pool& pool, WeightArena& arena);
    void pack_strips(std::span<const WeightBlock> blocks, const Kernels& kernels, Pool& pool,
                     WeightArena& arena);

    WeightSegment place_;
    int cols_;
    int matrix_rows_;
    std::shared_ptr<std::byte> strips_;
    std::shared_ptr<std::byte> rows_;  // [rows, cols], instead of strips_
};

class CpuWeight final : public Weight {
  public:
    CpuWeight(std::span<const WeightBlock> blocks, WeightUse use, const Kernels& kernels,
              Pool& pool, WeightArena& arena);

    std::span<const CpuSegment> parts() const { return parts_; }
    CpuMatrix block(int index) const;  // for experts only
    // Reads one row as f32 [cols].
    void read_row(float* out, int index, const Kernels& kernels) const;

  private:
    std::vector<CpuSegment> parts_;
};

}  // namespace aerie::cpu
