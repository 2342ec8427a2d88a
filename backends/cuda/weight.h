// Weights of the CUDA backend, in the layout of device/packed.cuh.
#pragma once

#include <functional>

#include "backend/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/memory.h"
#include "cuda/queue.h"

namespace aerie::cuda {

// A segment of a weight on the device. Experts lie one after the other, each packed by itself.
struct CudaSegment {
    WeightSegment place;
    int cols;
    RowOrder order;  // for experts: within each of them
    std::byte* data;
    size_t matrix_bytes;  // bytes of the segment, or of each expert
};

class CudaWeight final : public Weight {
  public:
    // Gets its memory from `allocate`; nothing is packed into it yet.
    CudaWeight(std::span<const WeightBlock> blocks, WeightUse use,
               const std::function<Buffer(size_t)>& allocate);

    std::span<const CudaSegment> parts() const { return parts_; }

  private:
    std::vector<CudaSegment> parts_;
    Buffer memory_;
};

// The packing of activations that all segments of a weight need; none if they differ.
Packing common_packing(const Weight& w);

// Packs rows [first_row, first_row + count) of a segment; `from` holds them on the device, as a
// WeightBlock does. All are rows of the same block.
struct PackRows {
    const std::byte* from;
    DType from_type;
    std::byte* to;  // zeroed where nothing was packed yet
    DType to_type;
    int first_row, count, cols;
    RowOrder order;
};
void pack_rows(const PackRows& task, Queue& queue);
// Whether pack_rows() converts rows from one type to another. If not, the host converts them first.
bool packs_rows(DType from, DType to);

}  // namespace aerie::cuda
