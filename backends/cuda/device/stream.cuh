// What the tensor-core matmuls have in common. A warp has 16 rows of the weight and up to 64
// tokens, and takes the inner elements in ascending order: neither the number of tokens nor
// anything else changes a bit. Its weights come through a ring in shared memory, many steps ahead;
// every lane copies what it will itself use, so nobody waits for anybody.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

// [rows] outputs of each token become out (+)= value + bias; or, gated, silu(gate) * up of the two
// halves of a paired weight.
struct MatmulOutput {
    View<float> out;
    RowOrder order;
    const float* bias;  // may be null
    bool accumulate, gated;
    const int32_t* places = nullptr;  // row of `out` of each token; null: they follow each other

    __device__ void put(int token, int row, float value) const {
        if (token >= out.rows || row >= out.cols) return;
        if (bias) value = value + bias[row];
        float& place = out[places ? places[token] : token][row];
        place = accumulate ? place + value : value;
    }
    // The four sums that a lane holds of a tile (see mma in ptx.cuh).
    __device__ void put_tile(int token_tile, int row_tile, const float (&sums)[4]) const {
        const int lane = int(threadIdx.x) % 32;
        const int token = token_tile * kTokenTile + lane % 4 * 2;
        const int row = order.row(row_tile * kTileRows + lane / 4);
        if (row < 0) return;
        for (int i = 0; i < 2; ++i)
            if (gated) {
                put(token + i, row, silu(sums[i]) * sums[2 + i]);
            } else {
                put(token + i, row, sums[i]);
                put(token + i, row + order.distance, sums[2 + i]);
            }
    }
};

// Steps of `words` times 16 bytes a lane. start(ring, place, step) copies one of them; with
// take(place, step) it is used. `place` is the ring index of a lane's first word, the next ones
// are 32 further each.
template <int steps_ahead, int words>
struct Ring {
    SharedArray<uint4, steps_ahead * words * 32> space;

    template <class Start, class Take>
    __device__ void run(int steps, const Start& start, const Take& take) {
        const int lane = int(threadIdx.x) % 32;
        for (int step = 0; step < steps_ahead; ++step) {
            if (step < steps) start(step * words * 32 + lane, step);
            commit_copies();  // also where there is nothing: the count of groups must be right
        }
        int slot = 0;
        for (int step = 0; step < steps; ++step) {
            wait_for_copies<steps_ahead - 1>();
            const int place = slot * words * 32 + lane;
            take(place, step);
            if (step + steps_ahead < steps) start(place, step + steps_ahead);
            commit_copies();
            slot = slot + 1 == steps_ahead ? 0 : slot + 1;
        }
    }
};

}  // namespace aerie::cuda
