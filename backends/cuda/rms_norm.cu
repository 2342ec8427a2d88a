// Rows over their root mean square, times a weight.
#include "cuda/backend.h"
#include "cuda/device/norm.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

// A block a row.
__global__ void rms_norm_kernel(ActivationView out, NormedRows rows) {
    __shared__ NormedRows::Space space;
    const int r = int(blockIdx.x), lane = int(threadIdx.x) % kGroup;
    const float factor = rows.factor(r, space);
    for_elements(
        tiles_of(out.cols, kGroup) * kGroup,
        [&](int i) {
            const float value = rows.value(r, min(i, out.cols - 1), factor);
            return i < out.cols ? value : 0.0f;
        },
        [&](int i, float value) { put_activations(out, r, i - lane, value); });
}

}  // namespace

template <>
void CudaBackend::execute(const RmsNorm& op) {
    if (pack_for_readers(op)) return;
    launch(rms_norm_kernel, {dim3(unsigned(op.x.rows)), dim3(kNormThreads), *queue_, "rms_norm"},
           op.out, NormedRows(op.x, op.weight, op.epsilon));
}

}  // namespace aerie::cuda
