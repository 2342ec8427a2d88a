// The parts that all tensor-core matmuls share: the epilogue, and the stream of weights and
// activations through a ring of stages in shared memory. A block has 128 rows of the weight at a
// time, and up to 64 tokens. K goes by steps, each of which fills a stage; it is summed in
// ascending order, in the parts of split.h or, for quantised types, of core/quant.h. The number of
// tokens changes no bit.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/rotation.cuh"
#include "cuda/device/split.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

// The epilogue of a matmul: out (+)= value + bias; or, gated, silu(gate) * up of the two halves of
// a paired weight (RowOrder); or value + bias goes through `rotation`.
struct MatmulOutput {
    View<float> out;
    RowOrder order;
    const float* bias;  // may be null
    bool accumulate, gated;
    bool defers_reduction = false;  // partial sums stay for the kernel that reads `out`
    // Row of `out` for each token, never with `accumulate`; null: token t has row t.
    const int32_t* places = nullptr;
    Rotation rotation = {};
    int first_head = 0;  // head that the rows begin with, if they are rotated

    __device__ bool is_rotated() const { return rotation.shape.heads > 0; }

    __device__ bool has(int token, int row) const { return token < out.rows && row < out.cols; }
    __device__ void put(int token, int row, float value) const {
        if (!has(token, row)) return;
        if (bias) value = value + bias[row];
        float& place = out[places ? places[token] : token][row];
        place = accumulate ? place + value : value;
    }
    // The epilogue of a lane's accumulators, four of each tile (see mma in ptx.cuh): first the
    // tiles of `token_tiles` times 8 tokens, then those of the next 16 rows. The loads that sixteen
    // of them need are started before the first is stored. Returns the amax of what it stored.
    template <int token_tiles, bool has_places = false, int tiles>
    __device__ unsigned put_tiles(float (&sums)[tiles][4], int token_tile, int row_tile) const {
        constexpr int kRowTiles = tiles / token_tiles;
        constexpr int kAtOnce = tiles < 4 ? token_tiles : 4 / kRowTiles;  // token tiles at a time
        const int lane = int(threadIdx.x) % 32;
        int rows[kRowTiles][2];
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
            const int row = order.row((row_tile + r) * kTileRows + lane / 4);
            rows[r][0] = row < 0 ? out.cols : row;
            rows[r][1] = row < 0 || gated ? out.cols : row + order.distance;
        }
        if (gated)
#pragma unroll
            for (float(&four)[4] : sums)
                for (int j = 0; j < 2; ++j) four[j] = silu(four[j]) * four[2 + j];
        unsigned most = 0;
#pragma unroll
        for (int first = 0; first < token_tiles; first += kAtOnce) {
            // Calls use(accumulator, index in `read`, token, row) for each.
            const auto each = [&](const auto& use) {
#pragma unroll
                for (int n = 0; n < kAtOnce * 2; ++n) {
                    const int tile = first + n / 2, second = n % 2;
                    const int token = (token_tile + tile) * kTokenTile + lane % 4 * 2 + second;
#pragma unroll
                    for (int r = 0; r < kRowTiles * 2; ++r)
                        use(sums[r / 2 * token_tiles + tile][r % 2 * 2 + second],
                            n * kRowTiles * 2 + r, token, rows[r / 2][r % 2]);
                }
            };
            float read[kAtOnce * kRowTiles * 4];
            if (bias) {
                each([&](float&, int i, int, int row) {
                    read[i] = row < out.cols ? bias[row] : 0.0f;
                });
                each([&](float& sum, int i, int, int) { sum = sum + read[i]; });
            }
            if (accumulate) {
                each([&](float&, int i, int token, int row) {
                    read[i] = has(token, row) ? out[token][row] : 0.0f;
                });
                each([&](float& sum, int i, int, int) { sum = read[i] + sum; });
            }
            each([&](float sum, int, int token, int row) {
                if (!has(token, row)) return;
                out[has_places ? places[token] : token][row] = sum;
                most = max(most, magnitude_of(sum));
            });
        }
        return most;
    }
};

// The epilogue that rotates, of a block's accumulators of 8 tokens; the row tiles of its warps
// follow each other from `first_tile` on. No head crosses two blocks, so both elements of a pair
// are in the same block.
__device__ inline void put_rotated(const MatmulOutput& output, int first_tile,
                                   const float (&sums)[4]) {
    constexpr int kTokens = kTokenTile / 2, kPairs = kBlockRows / 2;
    static_assert(kTokens * kPairs == kBlockThreads);
    __shared__ SharedArray<float, kTokens * kBlockRows> values;  // outputs of every other token
    const int thread = int(threadIdx.x), lane = thread % 32;
    const int dim = output.rotation.shape.head_dim, half = dim / 2;
    const int token = thread / kPairs, pair = thread % kPairs, i = pair % half;
    const int row = pair / half * dim + i, column = first_tile * kTileRows + row;
#pragma unroll
    for (int second = 0; second < min(2, output.out.rows); ++second) {
        const int at = lane % 4 * kBlockRows + thread / 32 * kTileRows + lane / 4;
        values[at] = sums[second];
        values[at + kTileRows / 2] = sums[2 + second];
        __syncthreads();
        const int t = token * 2 + second;
        if (t < output.out.rows && column < output.out.cols && output.rotation.row(t).slot >= 0) {
            float a[] = {values[token * kBlockRows + row]};
            float b[] = {values[token * kBlockRows + row + half]};
            if (output.bias) {
                a[0] = a[0] + output.bias[column];
                b[0] = b[0] + output.bias[column + half];
            }
            output.rotation.put(t, output.first_head + column / dim, i, a, b);
        }
        __syncthreads();
    }
}

// The float weights in a stage of a block.
template <int row_tiles>
struct WeightStep {
    static constexpr int kThreads = row_tiles * 32;
    static constexpr int kWeightWords = row_tiles * kStepTiles * 32;
    static constexpr size_t kBytes = kWeightWords * sizeof(uint4);
    SharedArray<uint4, kWeightWords> weight;
};

// A block's ring of stages in shared memory. Each is a `Step` of weights and activations, of
// Step::kBytes.
constexpr size_t kRingBytes = size_t(60) << 10;
constexpr size_t kWideRingBytes = size_t(120) << 10;  // if a block has a multiprocessor alone
// kBlockBytes: the shared memory that a block has on every GPU, which is that of Turing.
// kBesideRingBytes: what a matmul has beside its ring and the row that it holds, which is outputs
// to be rotated or gated, and whether it is the last block (code_test.py checks it).
constexpr size_t kBlockBytes = size_t(64) << 10, kBesideRingBytes = 2064;
template <class Step, size_t bytes = kRingBytes>
struct Ring {
    static constexpr int kSteps = int(bytes / Step::kBytes);
    static constexpr size_t kBytes = kSteps * Step::kBytes;
    static_assert(kSteps >= 2);
    static_assert(bytes == kWideRingBytes || kBytes + kBesideRingBytes <= kBlockBytes);
    Step steps[kSteps];
};

// The main loop of a matmul: the K steps of a block go through a ring, all threads together.
// weights(to, step) and columns.copy(to, step) start the caller's part of the copies of a step, up
// to kSteps - 1 steps ahead and in order; take(from, step) multiplies a step that is complete. Only
// the columns (activations) are made by the kernels before this one, so weights are copied before
// it waits for these; columns.begin() is called after the wait.
template <class Ring, class Weights, class Columns, class Take>
class Stream {
  public:
    __device__ Stream(Ring& ring, const StepRange& range, const Weights& weights, Columns& columns,
                      const Take& take)
        : ring_(ring),
          weights_(weights),
          columns_(columns),
          take_(take),
          step_(range.first),
          after_(range.after) {
        let_dependents_start();
        const int ahead = min(kSteps - 1, range.after - range.first);
        for (int i = 0; i < ahead; ++i) weights(ring.steps[i], range.first + i);
        wait_for_producers();
        columns.begin();
        for (int i = 0; i < kSteps - 1; ++i) {
            if (i < ahead) columns.copy(ring.steps[i], range.first + i);
            commit_copies();  // also if nothing was copied: wait_for_copies counts groups
        }
    }

    __device__ int step() const { return step_; }  // the next step
    __device__ bool has_more() const { return step_ < after_; }
    __device__ void take_until(int end) {
        for (; step_ < end; ++step_) {
            wait_for_copies<kSteps - 2>();
            // All copies of the step are there, and all threads have left the step before.
            __syncthreads();
            const int next = step_ + kSteps - 1;
            if (next < after_) {
                weights_(ring_.steps[free_], next);
                columns_.copy(ring_.steps[free_], next);
            }
            commit_copies();
            take_(ring_.steps[slot_], step_);
            free_ = slot_;
            slot_ = slot_ + 1 == kSteps ? 0 : slot_ + 1;
        }
    }

  private:
    static constexpr int kSteps = Ring::kSteps;
    Ring& ring_;
    const Weights& weights_;
    Columns& columns_;
    const Take& take_;
    int step_, slot_ = 0, free_ = kSteps - 1;
    const int after_;
};

}  // namespace aerie::cuda
