// Rotates Q and K to their positions (RoPE), and rounds K and V into the cache, pair by pair, in
// the epilogue of a matmul or in a kernel of its own.
#pragma once

#include "cuda/device/cache.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

struct Rotation {
    View<float> qkv;
    View<const float> rope;
    View<const int32_t> rows;
    AttentionShape shape;  // no heads: nothing is rotated
    CacheView kv;
    bool f16;  // the cache holds f16, else f32

    Rotation() = default;
    // From a RopeAppend or a MatmulRope; `block` has all of its rows, or some.
    template <class Op>
    Rotation(const Op& op, const Tensor& qkv, const Tensor& block)
        : qkv(qkv),
          rope(op.rope),
          rows(block),
          shape(op.shape),
          kv(op.kv),
          f16(op.kv.k.dtype == DType::F16) {}

    __device__ const Row& row(int r) const { return *reinterpret_cast<const Row*>(rows[r]); }
    // Takes elements i, i + 1 ... of a head of row r (`a`), and those head_dim / 2 behind them
    // (`b`). The row is not padding; heads are those of q, k and v, one after the other. Rotated q
    // and k are stored in qkv, k and v in the cache.
    template <int pairs>
    __device__ void put(int r, int head, int i, float (&a)[pairs], float (&b)[pairs]) const {
        const Row& place = row(r);
        const int half = shape.head_dim / 2, kv_head = head - shape.heads;
        if (kv_head < shape.kv_heads) {
            const float* angles = rope[place.position] + i;
            float cosines[pairs], sines[pairs];
            take(cosines, angles);
            take(sines, angles + half);
#pragma unroll
            for (int n = 0; n < pairs; ++n) {
                const float rotated = a[n] * cosines[n] - b[n] * sines[n];
                b[n] = b[n] * cosines[n] + a[n] * sines[n];
                a[n] = rotated;
            }
            float* x = qkv[r] + head * shape.head_dim + i;
            leave(x, a);
            leave(x + half, b);
        }
        if (kv_head < 0) return;
        f16 ? store<uint16_t>(place, kv_head, i, a, b) : store<float>(place, kv_head, i, a, b);
    }

    // Loads one element, or two at once.
    template <int count>
    __device__ static void take(float (&values)[count], const float* from) {
        static_assert(count <= 2);
        if constexpr (count == 1) {
            values[0] = *from;
        } else {
            const float2 two = *reinterpret_cast<const float2*>(from);
            values[0] = two.x;
            values[1] = two.y;
        }
    }

  private:
    template <int count>
    __device__ static void leave(float* to, const float (&values)[count]) {
        if constexpr (count == 1)
            *to = values[0];
        else
            *reinterpret_cast<float2*>(to) = make_float2(values[0], values[1]);
    }
    template <int count>
    __device__ static void leave(uint16_t* to, const float (&values)[count]) {
        if constexpr (count == 1)
            *to = to_f16(values[0]);
        else
            *reinterpret_cast<uint32_t*>(to) = to_f16(values[0]) | uint32_t(to_f16(values[1]))
                                                                       << 16;
    }
    template <class T, int pairs>
    __device__ void store(const Row& place, int kv_head, int i, const float (&a)[pairs],
                          const float (&b)[pairs]) const {
        const size_t cache_row = kv.row(place.sequence, place.slot);
        T* to = i + (kv_head < shape.kv_heads
                         ? kv.k<T>(cache_row) + kv_head * shape.head_dim
                         : kv.v<T>(cache_row) + (kv_head - shape.kv_heads) * shape.head_dim);
        leave(to, a);
        leave(to + shape.head_dim / 2, b);
    }
};

}  // namespace aerie::cuda
