// Rotates the queries and keys of one row, and rounds its keys and values into the cache.
#include "cpu/isa_kernels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Element i pairs with i + half.
void rotate(float* x, const float* rope, int half) {
    for_lanes(half, [&](int i, int n) {
        const F32x16 a = load_some(x + i, n), b = load_some(x + half + i, n);
        const F32x16 cosine = load_some(rope + i, n), sine = load_some(rope + half + i, n);
        store_some(x + i, a * cosine - b * sine, n);
        store_some(x + half + i, b * cosine + a * sine, n);
    });
}

}  // namespace

void rope_append(const RopeTask& task) {
    for (int head = 0; head < task.heads + task.kv_heads; ++head)
        rotate(task.qkv + head * task.head_dim, task.rope, task.head_dim / 2);
    const size_t width = size_t(task.kv_heads) * size_t(task.head_dim);
    const float* k = task.qkv + task.heads * task.head_dim;
    convert(task.k, task.type, k, Float::F32, width);
    convert(task.v, task.type, k + width, Float::F32, width);
}

}  // namespace aerie::cpu::AERIE_ISA
