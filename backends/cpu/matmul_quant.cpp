// Quantised weights times quantised activations. Dot products of 32 elements are exact integers, so
// only the sum over groups has an order, that of core/quant.h; a lane is an output row. Neither the
// number of columns nor any blocking changes a bit.
#include "cpu/columns.h"
#include "cpu/dots.h"
#include "cpu/isa_kernels.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Panels of a chunk, which is multiplied by all columns before the next one: it stays in L1.
constexpr int kChunkPanels = 16;
constexpr int kPartPanels = kSumPart / kPanelElements;
static_assert(kPartPanels % kChunkPanels == 0, "a chunk is of one part of the sum");

// Strips that are read side by side if columns are few: memory serves several streams faster than
// one.
constexpr int kStreams = kStripsTogether;
constexpr size_t kAheadBytes = 2048;  // prefetch distance of a single pass over a strip

// The form of the bytes to which codes are unpacked.
constexpr Form form_of(Codes codes) {
    switch (codes) {
        case Codes::bytes:
        case Codes::steps_of_4:
            return Form::signed_bytes;
        case Codes::two_bits:
        case Codes::five_bits:
        case Codes::six_bits:
            return Form::small_bytes;
        case Codes::nibbles:
            return Form::nibbles;
    }
    return Form::signed_bytes;
}
constexpr Form form_as_it_lies(Codes codes) {
    return codes == Codes::two_bits    ? Form::two_bits
           : codes == Codes::five_bits ? Form::five_bits
                                       : Form::six_bits;
}

// Unpacked groups of several strips, which all columns are multiplied by.
struct Chunk {
    alignas(64) uint8_t room[kChunkPanels][kPanelBytes];
    alignas(64) PanelScales scales[kChunkPanels];
    const uint8_t* panels[kChunkPanels];
};

// Reads a group's scales, and returns its panel as codes or as bytes.
template <DType type, bool as_codes>
inline const uint8_t* read_group(PanelScales& scales, uint8_t* room, const uint8_t* strip,
                                 int group) {
    constexpr StripLayout kLayout = layout_of(type);
    const int in_unit = group % kLayout.groups();
    const uint8_t* unit = strip + size_t(group / kLayout.groups()) * kLayout.unit_bytes();
    read_scales<type>(scales, unit, in_unit);
    const uint8_t* codes = unit + size_t(in_unit) * kLayout.code_bytes();
    return as_codes ? codes : read_panel<kLayout>(room, codes);
}

// Dot products of a group and C columns: of its halves, or of all of it.
template <Scales kind, int C>
struct Products {
    static constexpr StripLayout kLayout = {Codes::bytes, kind};
    static constexpr int kPieces = kLayout.in_halves() ? 2 : 1, kPieceSteps = kSteps / kPieces;
    Dots<C> of[kPieces];

    template <Form form>
    void read(const uint8_t* panel, const uint8_t* packed) {
        constexpr bool kFromZero = kLayout.has_least();
        dots<form, C, 0, kPieceSteps>(of[0], panel, packed, kFromZero ? -1 : 0);
        if constexpr (kPieces == 2)
            dots<form, C, kPieceSteps, kSteps>(of[1], panel, packed, kFromZero ? -1 : 1);
    }

    // The term that the group adds to the sum of column c.
    F32x16 term(int c, const PanelScales& scales, const uint8_t* packed) const {
        const F32x16 x = splat(Packed<C>::scale(packed, c));
        F32x16 product = of[0][c];
        if constexpr (kLayout.whole_bytes() > 0) product = product * load(scales.whole[0]);
        if constexpr (kPieces == 2) product = product + of[1][c] * load(scales.whole[1]);
        product = product * (load(scales.scale) * x);
        if constexpr (kLayout.has_least()) {
            F32x16 sum = splat(Packed<C>::sum(packed, 0, c));
            if constexpr (kLayout.whole_bytes() > 0) sum = sum * load(scales.whole_least[0]);
            if constexpr (kPieces == 2)
                sum = sum + splat(Packed<C>::sum(packed, 1, c)) * load(scales.whole_least[1]);
            product = product - sum * (load(scales.least) * x);
        }
        return product;
    }
};

// One pass: some columns times groups [first, last) of several strips, chunk after chunk. The pass
// of the first columns unpacks the chunk. Meanwhile each pass prefetches `lines` cache lines per
// panel, `ahead` bytes further on; with tiles only the pass of the first columns does so.
struct Pass {
    Chunk& chunk;
    const uint8_t* const* strips;
    int strip_count, first, last, groups;  // groups: of a whole strip
    const uint8_t* packed;                 // the pass's columns
    int column, columns;                   // the first column; padded columns of the task
    float (*sums)[kLanes];                 // [strip][column of the task]: current part
    float (*totals)[kLanes];               // the same: the parts before it
    size_t ahead;
    int lines;
};

// Prefetches `lines` cache lines, at least one.
inline void fetch(const uint8_t* from, int lines) {
    int line = 0;
    do __builtin_prefetch(from + line * 64);
    while (++line < lines);
}

// How groups are read, multiplied and added.
enum class Way {
    alone,           // one after the other, and nothing is kept: storing it would take longest
    in_turn,         // one after the other
    reads_first,     // all are unpacked first, and each is multiplied before the previous one is
                     // added: values that were just stored are slow to load into a tile, and so is
                     // a tile that was just stored
    integers_first,  // groups of all strips are multiplied before any is added. With few columns of
                     // bytes, where memory alone is the limit, the latencies of the few float
                     // operations then hide behind each other
};
// The way for `columns` columns, which are all of the task's or some of them.
constexpr Way way_of(const StripLayout& layout, int columns, bool are_all) {
    if (kTiles) return Way::reads_first;
    if (layout.is_super && (columns < kColumns || are_all)) return Way::alone;
    const bool of_bytes = form_of(layout.codes) == Form::signed_bytes;
    return of_bytes && columns <= kColumns / 2 ? Way::integers_first : Way::in_turn;
}

template <DType type, int C, Way way>
[[gnu::noinline]] void add_groups(const Pass& pass) {
    constexpr StripLayout kLayout = layout_of(type);
    constexpr bool kAsCodes = way == Way::alone && reads_codes(kLayout.codes);
    constexpr Form kForm = kAsCodes ? form_as_it_lies(kLayout.codes) : form_of(kLayout.codes);
    constexpr bool kIntegersFirst = way == Way::integers_first, kOneAhead = way == Way::reads_first;
    constexpr bool kReadsFirst = kIntegersFirst || kOneAhead;
    // Cache lines of a group; the prefetches are spread over the columns.
    constexpr int kLines = (int(kLayout.group_bytes()) + 63) / 64;
    constexpr int kColumnsOfLine = (C + kLines - 1) / kLines;
    const int strips = pass.strip_count, most = kChunkPanels / strips;
    for (int first = pass.first, groups; first < pass.last; first += groups) {
        groups = pass.last - first < most ? pass.last - first : most;
        const auto packed = [&](int g) {
            return pass.packed + size_t(first + g) * C * kPackedGroupBytes;
        };
        const size_t ahead = size_t(first) * kLayout.group_bytes() + pass.ahead;
        const auto read = [&](int g, int s, int at, PanelScales& scales) {
            if (!kOneAhead) fetch(pass.strips[s] + ahead + size_t(g * pass.lines) * 64, pass.lines);
            if (way == Way::alone || pass.column == 0)
                pass.chunk.panels[at] = read_group<type, kAsCodes>(scales, pass.chunk.room[at],
                                                                   pass.strips[s], first + g);
        };
        const auto multiply = [&](int g, int at, auto& product) {
            product.template read<kForm>(pass.chunk.panels[at], packed(g));
        };
        Products<kLayout.scales, C> products[kIntegersFirst ? kChunkPanels : kOneAhead ? 2 : 1];
        for (int g = 0, at = 0; g < groups && kReadsFirst; ++g)
            for (int s = 0; s < strips; ++s, ++at) {
                read(g, s, at, pass.chunk.scales[at]);
                if (kIntegersFirst) multiply(g, at, products[at]);
            }
        const int end = first + groups;
        const bool begins = first % kPartPanels == 0;
        const bool ends = end % kPartPanels == 0 || end == pass.groups;
        for (int s = 0; s < strips; ++s) {
            float(*sums)[kLanes] = pass.sums + s * pass.columns + pass.column;
            float(*totals)[kLanes] = pass.totals + s * pass.columns + pass.column;
            F32x16 part[C];
#pragma GCC unroll 16
            for (int c = 0; c < C; ++c) part[c] = begins ? splat(0.0f) : load(sums[c]);
            if (kOneAhead) multiply(0, s, products[0]);
            for (int g = 0, at = s; g < groups; ++g, at += strips) {
                PanelScales strip_scales = {};
                PanelScales& scales = way == Way::alone ? strip_scales : pass.chunk.scales[at];
                if (!kReadsFirst) read(g, s, at, scales);
                if (kOneAhead && g + 1 < groups)
                    multiply(g + 1, at + strips, products[(g + 1) % 2]);
                if (!kReadsFirst) multiply(g, at, products[0]);
                const auto& product = products[kIntegersFirst ? at : kOneAhead ? g % 2 : 0];
                const uint8_t* soon = pass.strips[s] + ahead + size_t(g) * kLayout.group_bytes();
#pragma GCC unroll 16
                for (int c = 0; c < C; ++c) {
                    if (kOneAhead && c % kColumnsOfLine == 0 && pass.column == 0)
                        fetch(soon + c / kColumnsOfLine * 64, 1);
                    part[c] = held(part[c] + product.term(c, scales, packed(g)));
                }
            }
            if (ends)
#pragma GCC unroll 16
                for (int c = 0; c < C; ++c) store(totals[c], load(totals[c]) + part[c]);
            else
#pragma GCC unroll 16
                for (int c = 0; c < C; ++c) store(sums[c], part[c]);
        }
    }
}

// Multiplies `strips` strips from `row` on.
template <DType type>
void multiply_strips(const QuantMatmulTask& task, int row, int strips) {
    constexpr size_t kGroupBytes = layout_of(type).group_bytes();
    const int groups = task.inner / kPanelElements;
    const int passes = (task.columns + kColumns - 1) / kColumns;
    // A single pass prefetches what it reads soon. With several, each pass prefetches its share of
    // the next chunk.
    const int together = passes == 1 ? groups : kChunkPanels / strips;
    const size_t distance =
        passes == 1 && !kTiles ? kAheadBytes : kChunkPanels / strips * kGroupBytes;
    const int lines = (int(kGroupBytes) / passes + 63) / 64;
    const uint8_t* strip[kStreams];
    for (int s = 0; s < strips; ++s)
        strip[s] = static_cast<const uint8_t*>(task.weight) +
                   size_t(row / kStripRows + s) * size_t(groups) * kGroupBytes;
    alignas(64) float sums[kMaxColumns][kLanes], totals[kMaxColumns][kLanes];
    const int columns = padded_columns(task.columns);
    for (int c = 0; c < strips * columns; ++c) store(totals[c], splat(0.0f));
    Chunk chunk;
    for (int first = 0, last; first < groups; first = last) {
        last = groups - first < together ? groups : first + together;
        size_t ahead = distance;
        for_full_columns<kColumns, kColumnStep>(task.columns, [&](auto c, int column) {
            const uint8_t* packed = static_cast<const uint8_t*>(task.packed) +
                                    size_t(column) * size_t(groups) * kPackedGroupBytes;
            const Pass pass = {chunk,  strip,   strips, first,  last,  groups, packed,
                               column, columns, sums,   totals, ahead, lines};
            constexpr StripLayout kLayout = layout_of(type);
            constexpr int C = c.value;
            constexpr Way kOfAll = way_of(kLayout, C, true), kOfSome = way_of(kLayout, C, false);
            (passes == 1 ? add_groups<type, C, kOfAll> : add_groups<type, C, kOfSome>)(pass);
            ahead += size_t((last - first) * lines) * 64;
        });
    }
    for (int s = 0; s < strips; ++s)
        write_strip(task.output, totals + s * columns, row + s * kStripRows, task.rows,
                    task.columns);
}

template <DType type>
void multiply(const QuantMatmulTask& task) {
    if constexpr (kTiles && layout_of(type).in_halves()) {
        __builtin_trap();  // never called: see dots_amx.h and isa.cpp
    } else {
        int row = 0;
        if (task.columns <= kColumns / 2)
            for (; task.rows - row > (kStreams - 1) * kStripRows; row += kStreams * kStripRows)
                multiply_strips<type>(task, row, kStreams);
        for (; row < task.rows; row += kStripRows) multiply_strips<type>(task, row, 1);
    }
}

}  // namespace

void matmul_quant(const QuantMatmulTask& task) {
    [[maybe_unused]] const DotUnit unit(task.columns);
    switch (task.type) {
        case DType::Q4_0:
            return multiply<DType::Q4_0>(task);
        case DType::Q4_1:
            return multiply<DType::Q4_1>(task);
        case DType::Q5_0:
            return multiply<DType::Q5_0>(task);
        case DType::Q5_1:
            return multiply<DType::Q5_1>(task);
        case DType::IQ4_NL:
            return multiply<DType::IQ4_NL>(task);
        case DType::Q2_K:
            return multiply<DType::Q2_K>(task);
        case DType::Q3_K:
            return multiply<DType::Q3_K>(task);
        case DType::Q4_K:
            return multiply<DType::Q4_K>(task);
        case DType::Q5_K:
            return multiply<DType::Q5_K>(task);
        case DType::Q6_K:
            return multiply<DType::Q6_K>(task);
        case DType::IQ4_XS:
            return multiply<DType::IQ4_XS>(task);
        default:
            return multiply<DType::Q8_0>(task);
    }
}

// Packs groups of C columns, as for_full_columns makes them; columns beyond the last one are zeros.
void pack_columns(const PackTask& task, int first, int last) {
    const StripLayout layout = layout_of(task.type);
    const int offset = form_of(layout.codes) == Form::signed_bytes ? kSignedOffset : layout.offset;
    const int groups = task.inner / kPanelElements;
    for_full_columns<kColumns, kColumnStep>(task.columns, [&](auto c, int column) {
        if (column + c.value <= first || column >= last) return;
        uint8_t* to = static_cast<uint8_t*>(task.packed) +
                      size_t(column) * size_t(groups) * kPackedGroupBytes;
        const char* x = static_cast<const char*>(task.x) + size_t(column) * task.x_stride;
        for (int g = 0; g < groups; ++g, to += c.value * kPackedGroupBytes)
            for (int i = 0; i < c.value; ++i)
                Packed<c.value>::put(
                    to, i,
                    column + i < task.columns
                        ? reinterpret_cast<const BlockI8G32*>(x + size_t(i) * task.x_stride)[g]
                        : BlockI8G32(),
                    layout, offset);
    });
}

}  // namespace aerie::cpu::AERIE_ISA
