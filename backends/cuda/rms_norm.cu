// RMS norm of rows, unless it is deferred to the matmuls that read them.
#include "cuda/backend.h"
#include "cuda/device/norm.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

// One block per row.
template <int each>
__global__ void rms_norm_kernel(ActivationView out, NormedRows rows) {
    __shared__ NormedRows::Space space;
    const int r = int(blockIdx.x), lane = int(threadIdx.x) % kGroup;
    rows.with_row<each>(r, space, [&](const auto& row) {
        row.for_some(out.cols, [&](int k, const float(&some)[kTogether]) {
            put_activations(out, r, k - lane, kRowThreads, some);
        });
    });
}

}  // namespace

template <>
void CudaBackend::enqueue(const RmsNorm& op) {
    if (defer_to_consumers(op)) return;
    with_kept(op.x.cols, [&](auto each) {
        launch_beside(rms_norm_kernel<each.value>,
                      {dim3(unsigned(op.x.rows)), dim3(kRowThreads), *queue_, "rms_norm"}, op.out,
                      NormedRows(op.x, op.weight, op.epsilon));
    });
}

}  // namespace aerie::cuda
