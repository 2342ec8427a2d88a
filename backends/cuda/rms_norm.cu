// Rows over their root mean square, times a weight.
#include "cuda/backend.h"
#include "cuda/device/norm.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

// A block a row.
__global__ void rms_norm_kernel(ActivationView out, NormedRows rows) {
    __shared__ NormedRows::Space space;
    const int r = int(blockIdx.x), thread = int(threadIdx.x), lane = thread % kGroup;
    begin_beside();
    const float factor = rows.factor(r, space);
    for (int first = thread - lane; first < out.cols; first += kNormThreads) {
        const int i = first + lane;
        put_activations(out, r, first, i < out.cols ? rows.value(r, i, factor) : 0.0f);
    }
}

}  // namespace

template <>
void CudaBackend::execute(const RmsNorm& op) {
    if (pack_for_readers(op)) return;
    launch_beside(rms_norm_kernel,
                  {dim3(unsigned(op.x.rows)), dim3(kNormThreads), *queue_, "rms_norm"}, op.out,
                  NormedRows(op.x, op.weight, op.epsilon));
}

}  // namespace aerie::cuda
