// Matmuls by segments of the weight and blocks of rows; the kernels are in matmul.cu and
// matmul_quant.cu.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/stream.cuh"
#include "cuda/weight.h"

namespace aerie::cuda {

Packing common_packing(const Weight& w) {
    const Packing packing = packing_of(w.segments.front().dtype);
    for (const WeightSegment& segment : w.segments)
        if (packing_of(segment.dtype) != packing) return Packing::none;
    return packing;
}

// Each reader comes once.
bool CudaBackend::packed_already(const Weight& w) {
    const auto reader = std::find(packed_for_.begin(), packed_for_.end(), &w);
    if (reader == packed_for_.end()) {
        packed_for_.clear();
        return false;
    }
    *reader = packed_for_.back();
    packed_for_.pop_back();
    return true;
}

MatmulColumns CudaBackend::columns_of(const Tensor& x, int first, const Weight& w) {
    const int count = std::min(kPassRows, x.rows - first);
    return {x.row_range(first, count), {}, packed_already(w) ? common_packing(w) : Packing::none};
}

template <>
void CudaBackend::execute(const Matmul& op) {
    for (int first = 0; first < op.x.rows; first += kPassRows) {
        MatmulColumns columns = columns_of(op.x, first, op.weight);
        const Tensor to = op.out.row_range(first, columns.x.rows);
        for (const CudaSegment& part : static_cast<const CudaWeight&>(op.weight).parts()) {
            const WeightSegment& place = part.place;
            const MatmulOutput output{
                .out = to.col_range(place.first_row, place.rows),
                .order = part.order,
                .bias = op.bias ? row<const float>(op.bias, 0) + place.first_row : nullptr,
                .accumulate = op.accumulate == Accumulate::yes,
                .gated = false};
            multiply(output, columns, part);
        }
    }
}

// Queries, keys and values are rotated and kept where they come to be, if no head lies in two
// blocks. Each eight tokens take a block some trips to memory for it, so many of them have a kernel
// of their own.
template <>
void CudaBackend::execute(const MatmulRope& op) {
    const std::span<const CudaSegment> parts = static_cast<const CudaWeight&>(op.weight).parts();
    const bool are_streamed = std::none_of(parts.begin(), parts.end(), [](const auto& part) {
        return part.place.dtype == DType::F32;
    });
    if (!are_streamed || kBlockRows % op.shape.head_dim != 0 || op.x.rows > kTokenTile)
        return op.run_parts(*this, {});
    MatmulColumns columns = columns_of(op.x, 0, op.weight);
    const Rotation rotation(op, op.qkv, op.rows.block);
    for (const CudaSegment& part : parts) {
        const WeightSegment& place = part.place;
        multiply({.out = op.qkv.col_range(place.first_row, place.rows),
                  .order = part.order,
                  .bias = op.bias ? row<const float>(op.bias, 0) + place.first_row : nullptr,
                  .accumulate = false,
                  .gated = false,
                  .rotation = rotation,
                  .first_head = place.first_row / op.shape.head_dim},
                 columns, part);
    }
}

// The products are gated where they come to be, unless a bias is added to them first. A quantised
// group of `out` is of 32 of them: those of four warps.
template <>
void CudaBackend::execute(const MatmulSwiglu& op) {
    const CudaSegment& both = static_cast<const CudaWeight&>(op.weight).parts().front();
    if (!both.order.is_paired() || op.bias || op.out.dtype != activation_type(op.weight))
        return op.run_parts(*this, {});
    for (int first = 0; first < op.x.rows; first += kPassRows) {
        MatmulColumns columns = columns_of(op.x, first, op.weight);
        const Tensor to = op.out.row_range(first, columns.x.rows);
        if (is_quantised(both.place.dtype))
            multiply_gated(to, columns, both);
        else
            multiply({.out = to,
                      .order = both.order,
                      .bias = nullptr,
                      .accumulate = false,
                      .gated = true},
                     columns, both, op.readers);
    }
}

}  // namespace aerie::cuda
