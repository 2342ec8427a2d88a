// Products of f32 matrices: by cuBLAS, or by a kernel where it is not installed.
#include "backend/training_checks.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/shared.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"
#include "cuda/training/cuda_training.h"

namespace aerie::cuda {

namespace {

constexpr int kTile = 64;   // rows and columns of a block's output
constexpr int kDepth = 16;  // elements of K that lie in shared memory at a time
constexpr int kSide = 16;   // a block has kSide x kSide threads
constexpr int kEach = kTile / kSide;

// kTile rows or columns of an operand at kDepth elements of K: element (i, k) is k * kPitch + i.
constexpr int kPitch = kTile + 1;  // so that writes along K meet different banks
using OperandTile = SharedArray<float, kDepth * kPitch>;

// Element (i, k) of the tile is m[first + i][k0 + k] if K lies along the rows of m, else
// m[k0 + k][first + i]; beyond the matrix it is 0. Neighbouring threads read neighbouring elements.
template <bool k_along_rows>
__device__ void load_tile(OperandTile& tile, const View<const float>& m, int first, int k0) {
    for (int n = int(threadIdx.x); n < kTile * kDepth; n += kSide * kSide) {
        const int i = k_along_rows ? n / kDepth : n % kTile;
        const int k = k_along_rows ? n % kDepth : n / kTile;
        const int r = k_along_rows ? first + i : k0 + k, c = k_along_rows ? k0 + k : first + i;
        tile[k * kPitch + i] = r < m.rows && c < m.cols ? m[r][c] : 0.0f;
    }
}

// A block computes a tile of the output, and a thread the elements of it that are kSide apart.
template <Product form>
__global__ void multiply_kernel(View<float> out, View<const float> a, View<const float> b,
                                int inner, bool accumulate) {
    __shared__ OperandTile a_tile;
    __shared__ OperandTile b_tile;
    const int row = int(blockIdx.x) * kTile, col = int(blockIdx.y) * kTile;
    const int y = int(threadIdx.x) / kSide, x = int(threadIdx.x) % kSide;
    float sums[kEach][kEach] = {};
    for (int k0 = 0; k0 < inner; k0 += kDepth) {
        load_tile<form != Product::at_b>(a_tile, a, row, k0);
        load_tile<form == Product::a_bt>(b_tile, b, col, k0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float of_a[kEach], of_b[kEach];
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                of_a[i] = a_tile[k * kPitch + i * kSide + y];
                of_b[i] = b_tile[k * kPitch + i * kSide + x];
            }
#pragma unroll
            for (int i = 0; i < kEach; ++i)
#pragma unroll
                for (int j = 0; j < kEach; ++j) sums[i][j] += of_a[i] * of_b[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            const int r = row + i * kSide + y, c = col + j * kSide + x;
            if (r < out.rows && c < out.cols)
                out[r][c] = accumulate ? out[r][c] + sums[i][j] : sums[i][j];
        }
}

}  // namespace

void CudaTraining::multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b,
                            bool accumulate) {
    const int inner = check_multiply(form, out, a, b);
    if (out.size() == 0) return;
    if (cublas_) return cublas_->multiply(form, out, a, b, inner, accumulate);
    const auto kernel = form == Product::a_bt  ? multiply_kernel<Product::a_bt>
                        : form == Product::a_b ? multiply_kernel<Product::a_b>
                                               : multiply_kernel<Product::at_b>;
    const dim3 blocks(unsigned(tiles_of(out.rows, kTile)), unsigned(tiles_of(out.cols, kTile)));
    launch(kernel, {blocks, dim3(kSide * kSide), *queue_, "multiply"}, tensor_of(out), tensor_of(a),
           tensor_of(b), inner, accumulate);
}

}  // namespace aerie::cuda
