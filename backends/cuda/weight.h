// Weights of the CUDA backend, in the layout of device/packed.cuh.
#pragma once

#include "backend/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/memory.h"
#include "cuda/queue.h"

namespace aerie::cuda {

class CudaWeight final : public Weight {
  public:
    CudaWeight(DType type, int rows, int cols, RowOrder order, Buffer memory)
        : order(order), memory_(std::move(memory)) {
        dtype = type;
        this->rows = rows;
        this->cols = cols;
    }
    std::byte* data() const { return static_cast<CudaMemory&>(*memory_).data(); }

    const RowOrder order;

  private:
    Buffer memory_;
};

// Packs rows [first_row, first_row + count) of a weight; `from` holds them as a WeightBlock does,
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

}  // namespace aerie::cuda
