// Losses with their gradients, and the sum of squares: a block sums a row in doubles, and the host
// adds the rows in ascending order.
#include <numeric>

#include "backend/training_checks.h"
#include "cuda/device/logits.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"
#include "cuda/training/block_sum.cuh"
#include "cuda/training/cuda_training.h"

namespace aerie::cuda {

namespace {

static_assert(kSumThreads == kChoiceThreads, "a block finds maxima, too");

// Calls body(c) for the elements of a row that are this thread's.
template <class Body>
__device__ void for_own(int cols, const Body& body) {
    for (int c = int(threadIdx.x); c < cols; c += kSumThreads) body(c);
}

// The key of the largest element of a row, for all threads of the block.
__device__ uint64_t largest_of(const float* row, int cols, BlockReducer& reducer) {
    uint64_t best = 0;
    for_own(cols, [&](int c) {
        const uint64_t key = order_key(row[c], c);
        if (key > best) best = key;
    });
    return reducer.largest(best);
}

__global__ void cross_entropy_kernel(View<float> logits, View<const float> targets,
                                     const int* target_rows, float weight, double* losses,
                                     double* hits) {
    __shared__ BlockReducer::Space keys;
    __shared__ BlockSumSpace<double> space;
    const int r = int(blockIdx.x), at = target_rows[r];
    float* const z = logits[r];
    if (at < 0) return for_own(logits.cols, [&](int c) { z[c] = 0; });
    const float* const p = targets[at];
    BlockReducer reducer(keys);
    const uint64_t largest = largest_of(z, logits.cols, reducer);
    const bool hit = id_of(largest) == id_of(largest_of(p, logits.cols, reducer));
    const float max = logit_of(largest);
    double sum = 0, mass = 0, loss = 0;
    for_own(logits.cols, [&](int c) {
        sum += double(expf(z[c] - max));
        mass += double(p[c]);
    });
    const float log_sum = max + float(log(sum_of_block(sum, space)));
    mass = sum_of_block(mass, space);
    for_own(logits.cols, [&](int c) {
        const float logarithm = z[c] - log_sum;
        loss -= double(p[c]) * double(logarithm);
        z[c] = weight * (float(mass) * expf(logarithm) - p[c]);
    });
    loss = sum_of_block(loss, space);
    if (threadIdx.x > 0) return;
    losses[r] = loss;
    hits[r] = hit;
}

__global__ void smooth_l1_kernel(View<float> dx, View<const float> x, View<const float> goals,
                                 const int* target_rows, float slope, double* losses) {
    __shared__ BlockSumSpace<double> space;
    const int r = int(blockIdx.x), at = target_rows[r];
    double loss = 0;
    for_own(dx.cols, [&](int c) {
        const float d = at < 0 ? 0.0f : x[r][c] - goals[at][c];
        const float size = fabsf(d);
        loss += size < 1 ? double(d) * double(d) / 2 : double(size) - 0.5;
        dx[r][c] = slope * fminf(fmaxf(d, -1.0f), 1.0f);
    });
    loss = sum_of_block(loss, space);
    if (threadIdx.x == 0) losses[r] = loss / dx.cols;
}

__global__ void squares_kernel(View<const float> x, double* sums) {
    __shared__ BlockSumSpace<double> space;
    const int r = int(blockIdx.x);
    double sum = 0;
    for_own(x.cols, [&](int c) { sum += double(x[r][c]) * double(x[r][c]); });
    sum = sum_of_block(sum, space);
    if (threadIdx.x == 0) sums[r] = sum;
}

Grid block_a_row(int rows, Queue& queue, const char* op) {
    return {dim3(unsigned(rows)), dim3(kSumThreads), queue, op};
}

}  // namespace

CrossEntropy CudaTraining::cross_entropy(const Matrix& logits, const Matrix& targets,
                                         std::span<const int> target_rows, double weight) {
    check_cross_entropy(logits, targets, target_rows);
    const size_t rows = target_rows.size();
    if (rows == 0) return {};
    double* const losses = sums(2 * rows);
    launch(cross_entropy_kernel, block_a_row(logits.rows, *queue_, "cross_entropy"),
           tensor_of(logits), tensor_of(targets), upload(target_rows), float(weight), losses,
           losses + rows);
    const std::vector<double> found = read_sums(2 * rows);
    CrossEntropy all;
    for (size_t r = 0; r < rows; ++r) {
        if (target_rows[r] < 0) continue;
        all.loss += found[r];
        all.rows += 1;
        all.hits += int(found[rows + r]);
    }
    return all;
}

double CudaTraining::smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                               std::span<const int> target_rows, double weight) {
    check_smooth_l1(dx, x, goals, target_rows);
    if (x.rows == 0) return 0;
    launch(smooth_l1_kernel, block_a_row(x.rows, *queue_, "smooth_l1"), tensor_of(dx), tensor_of(x),
           tensor_of(goals), upload(target_rows), float(weight / x.cols), sums(size_t(x.rows)));
    const std::vector<double> losses = read_sums(size_t(x.rows));
    return std::accumulate(losses.begin(), losses.end(), 0.0);
}

double CudaTraining::sum_of_squares(const Matrix& x) {
    if (x.rows == 0) return 0;
    launch(squares_kernel, block_a_row(x.rows, *queue_, "sum_of_squares"), tensor_of(x),
           sums(size_t(x.rows)));
    const std::vector<double> squares = read_sums(size_t(x.rows));
    return std::accumulate(squares.begin(), squares.end(), 0.0);
}

}  // namespace aerie::cuda
