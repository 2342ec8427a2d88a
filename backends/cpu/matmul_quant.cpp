// Quantised weights times quantised activations. Dot products of 32 elements are exact integers, so
// only the sum over groups has an order: ascending, multiply then add, one lane an output row.
// Neither the number of columns nor any blocking changes a bit.
#include "cpu/columns.h"
#include "cpu/dots.h"
#include "cpu/isa_kernels.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Groups of a strip that all columns meet before the next ones come: they stay in L1.
constexpr int kChunkGroups = 16;
// What a thread reads next, so that memory is never idle.
constexpr size_t kPrefetchBytes = 2048;

template <Quant type, int C>
void multiply_groups(float (*sums)[kLanes], const uint8_t* panel, const uint8_t* packed,
                     int groups) {
    // All integers first: the latencies of the few float operations then hide behind each other.
    alignas(64) int32_t dots[kChunkGroups][C][kLanes];
    for (int g = 0; g < groups; ++g) {
        const uint8_t* weights = panel + size_t(g) * panel_bytes(type);
        prefetch_panel(weights + kPrefetchBytes, panel_bytes(type));
        Dots<type>::template multiply<C>(dots[g], weights,
                                         packed + size_t(g) * C * kPackedGroupBytes);
    }
    F32x16 total[C];
    for (int c = 0; c < C; ++c) total[c] = load(sums[c]);
    for (int g = 0; g < groups; ++g) {
        const F32x16 scales =
            load_f16(panel + size_t(g + 1) * panel_bytes(type) - kStripRows * sizeof(Half));
        for (int c = 0; c < C; ++c) {
            const float scale =
                Dots<type>::template scale<C>(packed + size_t(g) * C * kPackedGroupBytes, c);
            total[c] = held(total[c] + to_float(load(dots[g][c])) * (scales * splat(scale)));
        }
    }
    for (int c = 0; c < C; ++c) store(sums[c], total[c]);
}

template <Quant type>
void multiply(const QuantMatmulTask& task) {
    const int groups = task.inner / kPanelElements;
    const uint8_t* strip = static_cast<const uint8_t*>(task.weight);
    const uint8_t* packed = static_cast<const uint8_t*>(task.packed);
    for (int row = 0; row < task.rows;
         row += kStripRows, strip += size_t(groups) * panel_bytes(type)) {
        alignas(64) float sums[kMostColumns][kLanes];
        for (int c = 0; c < task.columns; ++c) store(sums[c], splat(0.0f));
        for (int first = 0; first < groups; first += kChunkGroups) {
            const int count = groups - first < kChunkGroups ? groups - first : kChunkGroups;
            const uint8_t* panels = strip + size_t(first) * panel_bytes(type);
            for_full_columns<Dots<type>::kColumns>(task.columns, [&](auto c, int column) {
                const size_t offset = size_t(column) * size_t(groups) + size_t(first) * c.value;
                multiply_groups<type, c.value>(sums + column, panels,
                                               packed + offset * kPackedGroupBytes, count);
            });
        }
        write_strip(task.output, sums, row, task.rows, task.columns);
    }
}

// A group of C columns, as for_full_columns makes them, of which column c comes now.
template <Quant type>
void pack(const PackTask& task, int first, int last) {
    const int groups = task.inner / kPanelElements;
    for_full_columns<Dots<type>::kColumns>(task.columns, [&](auto c, int column) {
        if (column + c.value <= first || column >= last) return;
        uint8_t* to = static_cast<uint8_t*>(task.packed) +
                      size_t(column) * size_t(groups) * kPackedGroupBytes;
        const char* x = static_cast<const char*>(task.x) + size_t(column) * task.x_stride;
        for (int g = 0; g < groups; ++g, to += c.value * kPackedGroupBytes)
            for (int i = 0; i < c.value; ++i)
                Dots<type>::template pack<c.value>(
                    to, i, reinterpret_cast<const BlockI8G32*>(x + size_t(i) * task.x_stride)[g]);
    });
}

}  // namespace

void matmul_quant(const QuantMatmulTask& task) {
    task.type == Quant::Q8 ? multiply<Quant::Q8>(task) : multiply<Quant::Q4>(task);
}

void pack_columns(const PackTask& task, int first, int last) {
    task.type == Quant::Q8 ? pack<Quant::Q8>(task, first, last)
                           : pack<Quant::Q4>(task, first, last);
}

}  // namespace aerie::cpu::AERIE_ISA
