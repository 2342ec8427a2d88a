// Queries and keys rotated to their positions, keys and values rounded into the cache: pair by
// pair, wherever they come from.
#pragma once

#include "cuda/device/cache.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

struct Rotation {
    View<float> qkv;
    View<const float> rope;
    View<const int32_t> rows;
    AttentionShape shape;  // without heads: nothing is rotated
    CacheView kv;
    bool f16;  // what the cache holds

    Rotation() = default;
    // Of RopeAppend or MatmulRope; `block` is their rows, or some of them.
    template <class Op>
    Rotation(const Op& op, const Tensor& qkv, const Tensor& block)
        : qkv(qkv),
          rope(op.rope),
          rows(block),
          shape(op.shape),
          kv(op.kv),
          f16(op.kv.k.dtype == DType::F16) {}

    __device__ const Row& row(int r) const { return *reinterpret_cast<const Row*>(rows[r]); }
    // Elements i and i + head_dim / 2 of a head of row r, which is not padding; heads are those of
    // q, k and v, one after the other. Queries, and keys on their way, are left in qkv.
    __device__ void put(int r, int head, int i, float a, float b) const {
        const Row& place = row(r);
        const int half = shape.head_dim / 2, kv_head = head - shape.heads;
        if (kv_head < shape.kv_heads) {
            const float* angles = rope[place.position];
            const float cosine = angles[i], sine = angles[half + i];
            const float rotated = a * cosine - b * sine;
            b = b * cosine + a * sine;
            a = rotated;
            float* x = qkv[r] + head * shape.head_dim;
            x[i] = a;
            x[half + i] = b;
        }
        if (kv_head < 0) return;
        f16 ? store<uint16_t>(place, kv_head, i, a, b) : store<float>(place, kv_head, i, a, b);
    }

  private:
    template <class T>
    __device__ void store(const Row& place, int kv_head, int i, float a, float b) const {
        const size_t cache_row = kv.row(place.sequence, place.slot);
        T* to = kv_head < shape.kv_heads
                    ? kv.k<T>(cache_row) + kv_head * shape.head_dim
                    : kv.v<T>(cache_row) + (kv_head - shape.kv_heads) * shape.head_dim;
        if constexpr (sizeof(T) == 2) {
            to[i] = to_f16(a);
            to[shape.head_dim / 2 + i] = to_f16(b);
        } else {
            to[i] = a;
            to[shape.head_dim / 2 + i] = b;
        }
    }
};

}  // namespace aerie::cuda
