// Rotates queries and keys to their positions, and rounds keys and values into the cache.
#include "cuda/backend.h"
#include "cuda/device/cache.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

template <class T>
__device__ void put(T* to, float value) {
    if constexpr (sizeof(T) == 2)
        *to = to_f16(value);
    else
        *to = value;
}

// A block a row and head; heads are those of q, k and v, one after the other.
template <class T>
__global__ void rope_append_kernel(View<float> qkv, View<const float> rope,
                                   View<const int32_t> rows, AttentionShape shape, CacheView kv) {
    const int r = int(blockIdx.y), head = int(blockIdx.x);
    begin_beside();
    const Row& place = *reinterpret_cast<const Row*>(rows[r]);
    if (place.slot < 0) return;
    float* x = qkv[r] + head * shape.head_dim;
    const int half = shape.head_dim / 2, kv_head = head - shape.heads;
    const bool is_value = kv_head >= shape.kv_heads;
    const size_t cache_row = kv.row(place.sequence, place.slot);
    T* stored = nullptr;
    if (is_value)
        stored = kv.v<T>(cache_row) + (kv_head - shape.kv_heads) * shape.head_dim;
    else if (kv_head >= 0)
        stored = kv.k<T>(cache_row) + kv_head * shape.head_dim;
    for (int i = int(threadIdx.x); i < half; i += int(blockDim.x)) {
        float a = x[i], b = x[half + i];
        if (!is_value) {
            const float cosine = rope[place.position][i], sine = rope[place.position][half + i];
            const float rotated = a * cosine - b * sine;
            b = b * cosine + a * sine;
            a = rotated;
            x[i] = a;
            x[half + i] = b;
        }
        if (!stored) continue;
        put(stored + i, a);
        put(stored + half + i, b);
    }
}

}  // namespace

template <>
void CudaBackend::execute(const RopeAppend& op) {
    const AttentionShape& shape = op.shape;
    const dim3 blocks(unsigned(shape.heads + 2 * shape.kv_heads), unsigned(op.qkv.rows));
    const Grid grid{blocks, dim3(shape.head_dim > 64 ? 64 : 32), *queue_, "rope_append"};
    const auto kernel =
        op.kv.k.dtype == DType::F16 ? rope_append_kernel<uint16_t> : rope_append_kernel<float>;
    launch_beside(kernel, grid, op.qkv, op.rope, op.rows.block, shape, CacheView(op.kv));
}

}  // namespace aerie::cuda
