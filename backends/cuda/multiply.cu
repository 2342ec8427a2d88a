// Divides matmuls by segments of the weight and by blocks of rows; the kernels are in matmul.cu and
// matmul_quant.cu.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/prepared_row.cuh"
#include "cuda/device/stream.cuh"
#include "cuda/weight.h"

namespace aerie::cuda {

Packing common_packing(const Weight& w) {
    const Packing packing = packing_of(w.segments.front().dtype);
    for (const WeightSegment& segment : w.segments)
        if (packing_of(segment.dtype) != packing) return Packing::none;
    return packing;
}

Packing CudaBackend::packing_for(const Consumers& consumers, int rows) const {
    if (consumers.empty() || rows > kPassRows) return Packing::none;
    const Packing packing = common_packing(*consumers.front());
    for (const Weight* consumer : consumers)
        if (common_packing(*consumer) != packing) return Packing::none;
    return packing;
}

// Each consumer takes the rows once, and is then removed.
DeferredInput CudaBackend::deferred_input(const Weight& w) {
    const auto consumer = std::find(pending_consumers_.begin(), pending_consumers_.end(), &w);
    if (consumer == pending_consumers_.end()) {
        pending_consumers_.clear();
        return {};
    }
    *consumer = pending_consumers_.back();
    pending_consumers_.pop_back();
    return deferred_;
}

// A kernel may read the amax values of its input while it stores those of its output, so there are
// two places for them. There are at most a quarter as many values as elements.
float* CudaBackend::defer_amax(int count, const Consumers& consumers) {
    if (consumers.empty()) return nullptr;
    pending_consumers_.clear();
    if (packing_for(consumers, 1) == Packing::none) return nullptr;
    other_amax_ = !other_amax_;
    float* const amax = reinterpret_cast<float*>(packed_) + (other_amax_ ? limits_.widest : 0);
    pending_consumers_ = consumers;
    deferred_ = {.amax = amax, .amax_count = count};
    return amax;
}

RowTask CudaBackend::row_task(const MatmulColumns& columns) const {
    const DeferredInput& input = columns.deferred;
    return {NormedRows(input.x ? input.x : columns.x, input.weight, input.epsilon), input.amax,
            input.amax_count};
}

MatmulColumns CudaBackend::columns_of(const Tensor& x, int first, const Weight& w) {
    const int count = std::min(kPassRows, x.rows - first);
    return {x.row_range(first, count), {}, deferred_input(w)};
}

// Only with many tokens, for which a block would take long to add up the partial sums of all.
bool CudaBackend::may_defer_reduction(const Matmul& op) const {
    const CudaWeight& weight = static_cast<const CudaWeight&>(op.weight);
    const CudaSegment& part = weight.parts().front();
    return is_in_pass_ && op.x.rows <= kPassRows && token_tiles(op.x.rows) >= kManyTiles &&
           weight.parts().size() == 1 && packing_of(part.place.dtype) != Packing::none &&
           !part.order.is_paired() && split_.split_floats(weight.rows, weight.cols).may_defer();
}

void CudaBackend::multiply_rows(const Matmul& op, bool defers_reduction) {
    const bool accumulate = op.accumulate == Accumulate::yes;
    for (int first = 0; first < op.x.rows; first += kPassRows) {
        MatmulColumns columns = columns_of(op.x, first, op.weight);
        const Tensor to = op.out.row_range(first, columns.x.rows);
        for (const CudaSegment& part : static_cast<const CudaWeight&>(op.weight).parts()) {
            const WeightSegment& place = part.place;
            const MatmulOutput output{
                .out = to.col_range(place.first_row, place.rows),
                .order = part.order,
                .bias = op.bias ? row<const float>(op.bias, 0) + place.first_row : nullptr,
                .accumulate = accumulate,
                .gated = false,
                .defers_reduction = defers_reduction};
            multiply(output, columns, part);
            if (defers_reduction)
                deferred_reduction_ = {to, accumulate, output.bias,
                                       split_.split_floats(place.rows, part.cols)};
        }
    }
}

// Only a residual stream is added to, and a norm reads it next, which can take partial sums.
template <>
void CudaBackend::enqueue(const Matmul& op) {
    multiply_rows(op, op.accumulate == Accumulate::yes && may_defer_reduction(op));
}

// A single row stays as it is, if the matmuls of all consumers have kernels that normalise it.
bool CudaBackend::defer_to_consumers(const RmsNorm& norm) {
    pending_consumers_.clear();
    const auto takes_it = [](const Weight* consumer) {
        return consumer->matrix_rows == 0 &&
               std::all_of(consumer->segments.begin(), consumer->segments.end(),
                           [](const auto& segment) { return segment.dtype != DType::F32; });
    };
    const Consumers& consumers = norm.consumers;
    if (consumers.empty()) return false;
    if (norm.x.rows == 1 && std::all_of(consumers.begin(), consumers.end(), takes_it))
        deferred_ = {.x = norm.x, .weight = norm.weight, .epsilon = norm.epsilon};
    else if (const Packing packing = packing_for(consumers, norm.x.rows); packing != Packing::none)
        deferred_ = {.packed = packing}, pack_normed(packing, norm);
    else
        return false;
    pending_consumers_ = consumers;
    return true;
}

// The epilogue of the matmul rotates Q and K and stores K and V in the cache, if no head lies in
// two blocks. For each eight tokens this takes a block some trips to memory, so many tokens are
// rotated by a kernel of its own.
template <>
void CudaBackend::enqueue(const MatmulRope& op) {
    const std::span<const CudaSegment> parts = static_cast<const CudaWeight&>(op.weight).parts();
    const bool are_streamed = std::none_of(parts.begin(), parts.end(), [](const auto& part) {
        return part.place.dtype == DType::F32;
    });
    if (!are_streamed || kBlockRows % op.shape.head_dim != 0 || op.x.rows > kTokenTile) {
        const Matmul product{op.qkv, op.x, op.weight, Accumulate::no, op.bias};
        multiply_rows(product, may_defer_reduction(product));
        return execute(RopeAppend{op.qkv, op.rope, op.rows, op.shape, op.kv});
    }
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

// The epilogue of the matmul computes silu(gate) * up, unless a bias has to be added before; other
// activations have none. A quantised group of `out` is 32 of these, those of four warps.
template <>
void CudaBackend::enqueue(const MatmulGated& op) {
    const CudaSegment& both = static_cast<const CudaWeight&>(op.weight).parts().front();
    if (op.activation != Activation::silu || !both.order.is_paired() || op.bias ||
        op.out.dtype != activation_type(op.weight))
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
                     columns, both, op.consumers);
    }
}

}  // namespace aerie::cuda
