// Float weights times f32 activations. A lane is one output row and takes the inner elements in
// ascending order, fused: neither the number of columns nor any blocking changes a bit.
#include "cpu/columns.h"
#include "cpu/isa_kernels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Columns whose sums fill the registers beside one weight and one activation.
constexpr int kTileColumns =
    (kRegisters - kParts - 1) / kParts < 12 ? (kRegisters - kParts - 1) / kParts : 12;

// Inner elements of a strip that all columns meet before the next ones come: they stay in L1.
constexpr int kChunk = 256;

// What a thread reads next, so that memory is never idle.
constexpr int kPrefetchBytes = 1024;

template <class W, int C>
void multiply_chunk(float (*sums)[kLanes], const W* weight, const float* x, size_t x_stride,
                    int count) {
    F32x16 acc[C];
    for (int c = 0; c < C; ++c) acc[c] = load(sums[c]);
    for (int k = 0; k < count; ++k, weight += kLanes, ++x) {
        __builtin_prefetch(reinterpret_cast<const char*>(weight) + kPrefetchBytes);
        const F32x16 w = load(weight);
        for (int c = 0; c < C; ++c) acc[c] = held(fma(w, splat(x[size_t(c) * x_stride]), acc[c]));
    }
    for (int c = 0; c < C; ++c) store(sums[c], acc[c]);
}

template <class W>
void multiply(const MatmulTask& task) {
    const W* strip = static_cast<const W*>(task.weight);
    for (int row = 0; row < task.rows; row += kStripRows, strip += size_t(task.inner) * kLanes) {
        alignas(64) float sums[kMostColumns][kLanes];
        for (int c = 0; c < task.columns; ++c) store(sums[c], splat(0.0f));
        for (int k = 0; k < task.inner; k += kChunk) {
            const int count = task.inner - k < kChunk ? task.inner - k : kChunk;
            for_even_columns<kTileColumns>(task.columns, [&](auto c, int column) {
                multiply_chunk<W, c.value>(sums + column, strip + size_t(k) * kLanes,
                                           task.x + size_t(column) * task.x_stride + k,
                                           task.x_stride, count);
            });
        }
        write_strip(task.output, sums, row, task.rows, task.columns);
    }
}

}  // namespace

void matmul(const MatmulTask& task) {
    switch (task.type) {
        case Float::F32:
            return multiply<float>(task);
        case Float::F16:
            return multiply<Half>(task);
        case Float::BF16:
            return multiply<Brain>(task);
    }
}

}  // namespace aerie::cpu::AERIE_ISA
