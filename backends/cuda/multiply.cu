// Matmuls by segments of the weight and blocks of rows; the kernels are in matmul.cu and
// matmul_quant.cu.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/stream.cuh"
#include "cuda/weight.h"

namespace aerie::cuda {

Packing common_packing(const Weight& w, int tokens) {
    const Packing packing = packing_of(w.segments.front().dtype, tokens);
    for (const WeightSegment& segment : w.segments)
        if (packing_of(segment.dtype, tokens) != packing) return Packing::none;
    return packing;
}

MatmulColumns CudaBackend::columns_of(const Tensor& x, int first, const Weight& w) {
    const int count = std::min(kPassRows, x.rows - first);
    const bool are_packed = std::exchange(packed_for_, nullptr) == &w;
    return {x.row_range(first, count), {}, are_packed ? common_packing(w, count) : Packing::none};
}

void CudaBackend::do_matmul(Tensor out, Tensor x, const Weight& w, Tensor bias, Accumulate acc) {
    for (int first = 0; first < x.rows; first += kPassRows) {
        MatmulColumns columns = columns_of(x, first, w);
        const Tensor to = out.row_range(first, columns.x.rows);
        for (const CudaSegment& part : static_cast<const CudaWeight&>(w).parts()) {
            const WeightSegment& place = part.place;
            const MatmulOutput output{
                .out = to.col_range(place.first_row, place.rows),
                .order = part.order,
                .bias = bias ? row<const float>(bias, 0) + place.first_row : nullptr,
                .accumulate = acc == Accumulate::yes,
                .gated = false};
            multiply(output, columns, part);
        }
    }
}

// The products are gated where they come to be. A quantised group of `out` is of 32 of them: those
// of four warps.
void CudaBackend::do_matmul_swiglu(Tensor out, Tensor gate_up, Tensor x, const Weight& w) {
    const CudaSegment& both = static_cast<const CudaWeight&>(w).parts().front();
    if (!both.order.is_paired() || out.dtype != activation_type(w))
        return Backend::do_matmul_swiglu(out, gate_up, x, w);
    for (int first = 0; first < x.rows; first += kPassRows) {
        MatmulColumns columns = columns_of(x, first, w);
        const Tensor to = out.row_range(first, columns.x.rows);
        if (is_quantised(both.place.dtype))
            multiply_gated(to, columns, both);
        else
            multiply({.out = to,
                      .order = both.order,
                      .bias = nullptr,
                      .accumulate = false,
                      .gated = true},
                     columns, both);
    }
}

}  // namespace aerie::cuda
