// Attention of training-time test and its gradient. A warp has a row and head, whose elements its
// lanes share, and visits one key after the other; what it visits and adds up is in ascending
// order.
#include <algorithm>
#include <cmath>

#include "backend/training_checks.h"
#include "core/error.h"
#include "cuda/backend.h"
#include "cuda/device/arithmetic.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"
#include "cuda/training/block_sum.cuh"
#include "cuda/training/cuda_training.h"

namespace aerie::cuda {

namespace {

constexpr int kMostDepths = 16;
constexpr int kWarps = 4;  // warps of a block

// The same matrix of each depth.
template <class T>
struct Depths {
    View<T> at[kMostDepths] = {};

    explicit Depths(std::span<const Matrix> all) {
        for (size_t i = 0; i < all.size(); ++i) at[i] = tensor_of(all[i]);
    }
};

struct AttentionShape {
    int rows, heads, kv_heads, head_dim, depths;
    float scale;
    const int* first;  // [rows], the first row of the row's sequence
    const int* after;  // [rows], the row behind its last one

    __device__ int group() const { return heads / kv_heads; }
};

// A warp's row and head, of `heads` heads.
struct Place {
    int r, head;

    __device__ explicit Place(int heads) {
        const int warp = int(blockIdx.x) * kWarps + int(threadIdx.x) / 32;
        r = warp / heads;
        head = warp % heads;
    }
};

// A head of a row, shared by the lanes of a warp: lane l has elements l, l + 32, ..., and zeros
// beyond the last.
template <int each>
struct HeadRow {
    float at[each] = {};

    HeadRow() = default;
    __device__ HeadRow(const float* from, int head_dim) {
        for_own(head_dim, [&](float& mine, int d) { mine = from[d]; });
    }
    // Calls body(element, its place in the head) for the lane's elements.
    template <class Body>
    __device__ void for_own(int head_dim, const Body& body) {
#pragma unroll
        for (int i = 0; i < each; ++i) {
            const int d = int(threadIdx.x) % 32 + 32 * i;
            if (d < head_dim) body(at[i], d);
        }
    }
    // Becomes itself times `kept`, plus x times `factor`.
    __device__ void add(float factor, const HeadRow& x, float kept = 1) {
#pragma unroll
        for (int i = 0; i < each; ++i) at[i] = at[i] * kept + factor * x.at[i];
    }
};

template <int each>
__device__ float dot(const HeadRow<each>& a, const HeadRow<each>& b) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) sum += a.at[i] * b.at[i];
    return sum_of_warp(sum);
}

// Calls visit(key, value) for every key that row r attends to: those of depth 0 up to its own, then
// its own of each later depth.
template <int each, class Visit>
__device__ void for_each_key(const Depths<const float>& keys, const Depths<const float>& values,
                             const AttentionShape& shape, const Place& place, const Visit& visit) {
    const int column = place.head / shape.group() * shape.head_dim, r = place.r;
    const auto at = [&](int depth, int row) {
        visit(HeadRow<each>(keys.at[depth][row] + column, shape.head_dim),
              HeadRow<each>(values.at[depth][row] + column, shape.head_dim));
    };
    for (int row = shape.first[r]; row <= r; ++row) at(0, row);
    for (int depth = 1; depth < shape.depths; ++depth) at(depth, r);
}

template <int each>
__global__ void attend_kernel(View<float> out, View<float> lse, View<const float> q,
                              Depths<const float> keys, Depths<const float> values,
                              AttentionShape shape) {
    const Place place(shape.heads);
    if (place.r >= shape.rows) return;  // the same for a whole warp
    const int column = place.head * shape.head_dim;
    const HeadRow<each> query(q[place.r] + column, shape.head_dim);
    HeadRow<each> sums;
    float max = -infinity(), sum = 0;
    for_each_key<each>(keys, values, shape, place, [&](const auto& key, const auto& value) {
        const float score = dot(query, key) * shape.scale, before = max;
        max = fmaxf(max, score);
        const float kept = expf(before - max), p = expf(score - max);
        sum = sum * kept + p;
        sums.add(p, value, kept);
    });
    sums.for_own(shape.head_dim, [&](float mine, int d) { out[place.r][column + d] = mine / sum; });
    if (threadIdx.x % 32 == 0) lse[place.r][place.head] = max + logf(sum);
}

// With P = exp(S - lse): dP = dO V^T, dS = P (dP - dO . O), dQ = dS K. dO . O goes to `along`
// [rows, heads] for the kernel after this one.
template <int each>
__global__ void query_gradient_kernel(View<float> dq, float* along, View<const float> dout,
                                      View<const float> out, View<const float> lse,
                                      View<const float> q, Depths<const float> keys,
                                      Depths<const float> values, AttentionShape shape) {
    const Place place(shape.heads);
    if (place.r >= shape.rows) return;
    const int column = place.head * shape.head_dim;
    const HeadRow<each> query(q[place.r] + column, shape.head_dim);
    const HeadRow<each> d(dout[place.r] + column, shape.head_dim);
    const float d_along = dot(d, HeadRow<each>(out[place.r] + column, shape.head_dim));
    const float own_lse = lse[place.r][place.head];
    HeadRow<each> gradient;
    for_each_key<each>(keys, values, shape, place, [&](const auto& key, const auto& value) {
        const float p = expf(dot(query, key) * shape.scale - own_lse);
        gradient.add(p * (dot(d, value) - d_along) * shape.scale, key);
    });
    gradient.for_own(shape.head_dim, [&](float mine, int i) { dq[place.r][column + i] = mine; });
    if (threadIdx.x % 32 == 0) along[size_t(place.r) * shape.heads + place.head] = d_along;
}

// dV += P^T dO and dK += dS^T Q, by a warp for a row and head of the keys of a depth: the rows that
// attend to it are its own and, in depth 0, those after it in its sequence.
template <int each>
__global__ void key_gradient_kernel(Depths<float> dkeys, Depths<float> dvalues, const float* along,
                                    View<const float> dout, View<const float> lse,
                                    View<const float> q, Depths<const float> keys,
                                    Depths<const float> values, AttentionShape shape) {
    const Place place(shape.kv_heads);
    if (place.r >= shape.rows) return;
    const int depth = int(blockIdx.y), kv_column = place.head * shape.head_dim;
    const HeadRow<each> key(keys.at[depth][place.r] + kv_column, shape.head_dim);
    const HeadRow<each> value(values.at[depth][place.r] + kv_column, shape.head_dim);
    HeadRow<each> dkey, dvalue;
    const int after = depth == 0 ? shape.after[place.r] : place.r + 1;
    for (int r = place.r; r < after; ++r)
        for (int i = 0; i < shape.group(); ++i) {
            const int head = place.head * shape.group() + i, column = head * shape.head_dim;
            const HeadRow<each> query(q[r] + column, shape.head_dim);
            const HeadRow<each> d(dout[r] + column, shape.head_dim);
            const float p = expf(dot(query, key) * shape.scale - lse[r][head]);
            const float d_along = along[size_t(r) * shape.heads + head];
            dvalue.add(p, d);
            dkey.add(p * (dot(d, value) - d_along) * shape.scale, query);
        }
    float* const to_key = dkeys.at[depth][place.r] + kv_column;
    float* const to_value = dvalues.at[depth][place.r] + kv_column;
    dkey.for_own(shape.head_dim, [&](float mine, int i) { to_key[i] += mine; });
    dvalue.for_own(shape.head_dim, [&](float mine, int i) { to_value[i] += mine; });
}

Grid warps(int count, size_t depths, Queue& queue, const char* op) {
    return {dim3(unsigned(tiles_of(count, kWarps)), unsigned(depths)), dim3(32 * kWarps), queue,
            op};
}

// Throws Error if the kernels cannot do it.
void check_limits(size_t depths, int head_dim) {
    if (depths > kMostDepths || head_dim > kMaxHeadDim)
        throw Error("cuda: attention in training takes " + std::to_string(kMostDepths) +
                    " depths and heads of " + std::to_string(kMaxHeadDim) + ", not " +
                    std::to_string(depths) + " and " + std::to_string(head_dim));
}

// For every row the first row of its sequence; then for every row the one behind its last.
std::vector<int> ranges_of(std::span<const int> sequences) {
    const size_t rows = size_t(sequences.back());
    std::vector<int> ranges(2 * rows);
    for (size_t i = 1; i < sequences.size(); ++i) {
        const auto fill = [&](size_t from, int value) {
            std::fill_n(ranges.begin() + int64_t(from) + sequences[i - 1],
                        sequences[i] - sequences[i - 1], value);
        };
        fill(0, sequences[i - 1]);
        fill(rows, sequences[i]);
    }
    return ranges;
}

// Calls use(each) with the number of elements that a lane has of a head, as a constant.
template <class Use>
void with_each(int head_dim, const Use& use) {
    head_dim <= 128 ? use(std::integral_constant<int, 4>()) : use(std::integral_constant<int, 8>());
}

AttentionShape shape_of(const TrainedAttention& shape, size_t depths, const int* ranges) {
    const int rows = shape.sequences.back();
    return {rows,           shape.heads,  shape.kv_heads,
            shape.head_dim, int(depths),  1 / std::sqrt(float(shape.head_dim)),
            ranges,         ranges + rows};
}

}  // namespace

void CudaTraining::attend(const Matrix& out, const Matrix& lse, const Matrix& q,
                          std::span<const Matrix> keys, std::span<const Matrix> values,
                          const TrainedAttention& shape) {
    check_attend(out, lse, q, keys, values, shape);
    check_limits(keys.size(), shape.head_dim);
    if (q.rows == 0) return;
    const AttentionShape device_shape =
        shape_of(shape, keys.size(), upload(ranges_of(shape.sequences)));
    with_each(shape.head_dim, [&](auto each) {
        launch(attend_kernel<each.value>, warps(q.rows * shape.heads, 1, *queue_, "attend"),
               tensor_of(out), tensor_of(lse), tensor_of(q), Depths<const float>(keys),
               Depths<const float>(values), device_shape);
    });
}

void CudaTraining::attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                               std::span<const Matrix> dvalues, const Matrix& dout,
                               const Matrix& out, const Matrix& lse, const Matrix& q,
                               std::span<const Matrix> keys, std::span<const Matrix> values,
                               const TrainedAttention& shape) {
    check_attend_back(dq, dkeys, dvalues, dout, out, lse, q, keys, values, shape);
    check_limits(keys.size(), shape.head_dim);
    if (q.rows == 0) return;
    const AttentionShape device_shape =
        shape_of(shape, keys.size(), upload(ranges_of(shape.sequences)));
    float* const along = along_.take<float>(lse.size(), queue_);
    const Depths<const float> all_keys(keys), all_values(values);
    with_each(shape.head_dim, [&](auto each) {
        launch(query_gradient_kernel<each.value>,
               warps(q.rows * shape.heads, 1, *queue_, "attend_back"), tensor_of(dq), along,
               tensor_of(dout), tensor_of(out), tensor_of(lse), tensor_of(q), all_keys, all_values,
               device_shape);
        launch(key_gradient_kernel<each.value>,
               warps(q.rows * shape.kv_heads, keys.size(), *queue_, "attend_back"),
               Depths<float>(dkeys), Depths<float>(dvalues), along, tensor_of(dout), tensor_of(lse),
               tensor_of(q), all_keys, all_values, device_shape);
    });
}

}  // namespace aerie::cuda
