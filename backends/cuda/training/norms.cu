// RMS norm of rows and its gradients, and sums of rows.
#include "backend/training_checks.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"
#include "cuda/training/block_sum.cuh"
#include "cuda/training/cuda_training.h"

namespace aerie::cuda {

namespace {

// One block per row.
__global__ void norm_kernel(View<float> out, View<float> inverse, View<const float> x,
                            View<const float> weight, float epsilon) {
    __shared__ BlockSumSpace<float> space;
    const int r = int(blockIdx.x);
    float squares = 0;
    for (int c = int(threadIdx.x); c < x.cols; c += kSumThreads) squares += x[r][c] * x[r][c];
    const float scale = 1 / sqrtf(sum_of_block(squares, space) / float(x.cols) + epsilon);
    if (threadIdx.x == 0) inverse[r][0] = scale;
    for (int c = int(threadIdx.x); c < x.cols; c += kSumThreads)
        out[r][c] = x[r][c] * scale * weight[0][c];
}

// One block per row. With y = x s w and s = (mean(x^2) + epsilon)^(-1/2): dx = s (g - x s^2 mean(g
// x)), g = dout w.
__global__ void norm_back_kernel(View<float> dx, View<const float> dout, View<const float> inverse,
                                 View<const float> x, View<const float> weight) {
    __shared__ BlockSumSpace<float> space;
    const int r = int(blockIdx.x);
    const float scale = inverse[r][0];
    float along = 0;
    for (int c = int(threadIdx.x); c < x.cols; c += kSumThreads)
        along += dout[r][c] * weight[0][c] * x[r][c];
    along = sum_of_block(along, space) * scale * scale / float(x.cols);
    for (int c = int(threadIdx.x); c < x.cols; c += kSumThreads)
        dx[r][c] += scale * (dout[r][c] * weight[0][c] - x[r][c] * along);
}

struct Element {
    View<const float> x;
    __device__ float operator()(int r, int c) const { return x[r][c]; }
};

struct WeightGradient {
    View<const float> dout, inverse, x;
    __device__ float operator()(int r, int c) const { return dout[r][c] * x[r][c] * inverse[r][0]; }
};

constexpr int kColumns = 32;    // columns of a block
constexpr int kRowGroups = 16;  // row r belongs to group r % kRowGroups

// out [1, cols] += the sum over rows of value(r, c). A thread sums a column's rows of a group.
template <class Value>
__global__ void column_kernel(View<float> out, int rows, Value value) {
    __shared__ SharedArray<float, kRowGroups * kColumns> sums;
    const int group = int(threadIdx.x) / kColumns;
    const int c = int(blockIdx.x) * kColumns + int(threadIdx.x) % kColumns;
    float sum = 0;
    if (c < out.cols)
        for (int r = group; r < rows; r += kRowGroups) sum += value(r, c);
    sums[int(threadIdx.x)] = sum;
    __syncthreads();
    if (group > 0 || c >= out.cols) return;
    for (int other = 1; other < kRowGroups; ++other)
        sum += float(sums[other * kColumns + int(threadIdx.x)]);
    out[0][c] += sum;
}

template <class Value>
void add_columns(const Matrix& out, int rows, Queue& queue, const char* op, const Value& value) {
    if (out.cols == 0) return;
    launch(column_kernel<Value>,
           {dim3(unsigned(tiles_of(out.cols, kColumns))), dim3(kColumns * kRowGroups), queue, op},
           tensor_of(out), rows, value);
}

}  // namespace

void CudaTraining::sum_rows(const Matrix& out, const Matrix& x) {
    check_vector(out, x);
    add_columns(out, x.rows, *queue_, "sum_rows", Element{tensor_of(x)});
}

void CudaTraining::rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x,
                            const Matrix& weight, double epsilon) {
    check_rms_norm(out, inverse, x, weight);
    if (x.rows == 0) return;
    launch(norm_kernel, {dim3(unsigned(x.rows)), dim3(kSumThreads), *queue_, "rms_norm"},
           tensor_of(out), tensor_of(inverse), tensor_of(x), tensor_of(weight), float(epsilon));
}

void CudaTraining::rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                                 const Matrix& inverse, const Matrix& x, const Matrix& weight) {
    check_rms_norm_back(dx, dweight, dout, inverse, x, weight);
    add_columns(dweight, x.rows, *queue_, "rms_norm_back",
                WeightGradient{tensor_of(dout), tensor_of(inverse), tensor_of(x)});
    if (!dx || x.rows == 0) return;
    launch(norm_back_kernel, {dim3(unsigned(x.rows)), dim3(kSumThreads), *queue_, "rms_norm_back"},
           tensor_of(dx), tensor_of(dout), tensor_of(inverse), tensor_of(x), tensor_of(weight));
}

}  // namespace aerie::cuda
