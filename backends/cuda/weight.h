// Weights of the CUDA backend, in the layout of device/packed.cuh.
#pragma once

#include <functional>

#include "backend/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/memory.h"
#include "cuda/queue.h"

namespace aerie::cuda {

// A segment on the device. Experts lie one after the other, each packed by itself.
struct CudaSegment {
    WeightSegment place;
    int cols;
    RowOrder order;  // of experts: within each
    std::byte* data;
    size_t matrix_bytes;  // of all, or of each expert
};

class CudaWeight final : public Weight {
  public:
    // Memory of `allocate`, where nothing is packed yet.
    CudaWeight(std::span<const WeightBlock> blocks, WeightUse use,
               const std::function<Buffer(size_t)>& allocate);

    std::span<const CudaSegment> parts() const { return parts_; }

  private:
    std::vector<CudaSegment> parts_;
    Buffer memory_;
};

// What all segments of a weight want; none where they differ.
Packing common_packing(const Weight& w);

// Packs rows [first_row, first_row + count) of a segment; `from` holds them as a WeightBlock does,
// on the device. They are of one block of it.
struct PackRows {
    const std::byte* from;
    DType from_type;
    std::byte* to;  // zeroed where nothing was packed yet
    DType to_type;
    int first_row, count, cols;
    RowOrder order;
};
void pack_rows(const PackRows& task, Queue& queue);
// Whether it makes rows of one type of those of another; where it does not, the host does.
bool packs_rows(DType from, DType to);

}  // namespace aerie::cuda
