// Quantised weights times quantised activations. Dot products of 32 elements are exact integers, so
// only the sum over groups has an order, that of core/quant.h: multiply then add, one lane an
// output row. Neither the number of columns nor any blocking changes a bit.
#include "cpu/columns.h"
#include "cpu/dots.h"
#include "cpu/isa_kernels.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Panels of a chunk, which all columns meet before the next ones come: they stay in L1.
constexpr int kChunkPanels = 16;
constexpr int kPartPanels = kSumPart / kPanelElements;
static_assert(kPartPanels % kChunkPanels == 0, "a chunk is of one part of the sum");

// Strips side by side where columns are few: memory serves several streams faster than one.
constexpr int kStreams = 4;
constexpr size_t kAheadBytes = 2048;  // what the only pass over a strip fetches before it is read

// R strips; a pass of C columns fetches meanwhile a few lines a panel, `ahead` bytes behind it.
template <int R>
struct Strips {
    const uint8_t* panels[R];    // from a chunk's first on
    float (*sums[R])[kLanes];    // [columns], of a part of the sum
    float (*totals[R])[kLanes];  // of the parts that have ended
    bool begins, ends;           // whether a part does, with this chunk
    size_t ahead;
    int lines;
};

// At least one line. Of several strips g++ would keep an address for each line of each, in memory.
template <int R>
inline void fetch(const uint8_t* from, int lines) {
    if constexpr (R > 1) asm("" : "+r"(from));
    int line = 0;
    do __builtin_prefetch(from + line * 64);
    while (++line < lines);
}

template <Quant type, int R, int C>
void multiply_groups(const Strips<R>& strips, int column, const uint8_t* packed, int groups) {
    // All integers first: the latencies of the few float operations then hide behind each other.
    alignas(64) int32_t dots[kChunkPanels / R][R][C][kLanes];
    for (int g = 0; g < groups; ++g)
        for (int r = 0; r < R; ++r) {
            fetch<R>(strips.panels[r] + strips.ahead + size_t(g * strips.lines) * 64, strips.lines);
            Dots<type>::template multiply<C>(dots[g][r],
                                             strips.panels[r] + size_t(g) * panel_bytes(type),
                                             packed + size_t(g) * C * kPackedGroupBytes);
        }
    for (int r = 0; r < R; ++r) {
        float(*sums)[kLanes] = strips.sums[r] + column;
        float(*totals)[kLanes] = strips.totals[r] + column;
        F32x16 part[C];
        for (int c = 0; c < C; ++c) part[c] = strips.begins ? splat(0.0f) : load(sums[c]);
        for (int g = 0; g < groups; ++g) {
            const F32x16 scales = load_f16(strips.panels[r] + size_t(g + 1) * panel_bytes(type) -
                                           kStripRows * sizeof(Half));
            for (int c = 0; c < C; ++c) {
                const float scale =
                    Dots<type>::template scale<C>(packed + size_t(g) * C * kPackedGroupBytes, c);
                part[c] = held(part[c] + to_float(load(dots[g][r][c])) * (scales * splat(scale)));
            }
        }
        if (strips.ends)
            for (int c = 0; c < C; ++c) store(totals[c], load(totals[c]) + part[c]);
        else
            for (int c = 0; c < C; ++c) store(sums[c], part[c]);
    }
}

// Of the rows (lanes) of R strips and all columns.
template <int R>
using Sums = float[R][kMostColumns / R][kLanes];

// R strips from `row` on. Of several passes over a chunk each fetches its share of the next one.
template <Quant type, int R>
void multiply_strips(const QuantMatmulTask& task, int row) {
    const int groups = task.inner / kPanelElements;
    const int passes = (task.columns + Dots<type>::kColumns - 1) / Dots<type>::kColumns;
    const uint8_t* packed = static_cast<const uint8_t*>(task.packed);
    alignas(64) Sums<R> sums, totals;
    Strips<R> strips;
    strips.lines = (int(panel_bytes(type)) / passes + 63) / 64;
    for (int r = 0; r < R; ++r) {
        strips.panels[r] = static_cast<const uint8_t*>(task.weight) +
                           size_t(row / kStripRows + r) * size_t(groups) * panel_bytes(type);
        strips.sums[r] = sums[r];
        strips.totals[r] = totals[r];
        for (int c = 0; c < task.columns; ++c) store(totals[r][c], splat(0.0f));
    }
    for (int first = 0, count; first < groups; first += count) {
        count = groups - first < kChunkPanels / R ? groups - first : kChunkPanels / R;
        const size_t chunk_bytes = size_t(count) * panel_bytes(type);
        strips.begins = first % kPartPanels == 0;
        strips.ends = (first + count) % kPartPanels == 0 || first + count == groups;
        strips.ahead = passes == 1 ? kAheadBytes : chunk_bytes;
        for_full_columns<Dots<type>::kColumns>(task.columns, [&](auto c, int column) {
            const size_t offset = size_t(column) * size_t(groups) + size_t(first) * c.value;
            multiply_groups<type, R, c.value>(strips, column, packed + offset * kPackedGroupBytes,
                                              count);
            strips.ahead += size_t(count * strips.lines) * 64;
        });
        for (int r = 0; r < R; ++r) strips.panels[r] += chunk_bytes;
    }
    for (int r = 0; r < R; ++r)
        write_strip(task.output, totals[r], row + r * kStripRows, task.rows, task.columns);
}

template <Quant type>
void multiply(const QuantMatmulTask& task) {
    int row = 0;
    if (task.columns <= Dots<type>::kColumns / 2)
        for (; task.rows - row > (kStreams - 1) * kStripRows; row += kStreams * kStripRows)
            multiply_strips<type, kStreams>(task, row);
    for (; row < task.rows; row += kStripRows) multiply_strips<type, 1>(task, row);
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
