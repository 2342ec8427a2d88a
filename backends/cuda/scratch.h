// The memory that ops need beside their tensors: one allocation for all, laid out here.
#pragma once

#include <algorithm>

#include "core/quant.h"
#include "cuda/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/split.h"

namespace aerie::cuda {

// Packed activations of 8 tokens and 16 elements: up to three parts of 2 bytes each.
constexpr size_t kFloatColumnBytes = kTokenTile * kFloatTileCols * 3 * 2;
constexpr size_t kRowScaleBytes = kPassRows * sizeof(float);  // inverse scales of rows, before them

// Logits of a slice; top_k keeps the best candidates of each slice of a row.
constexpr int kSliceIds = 4096;
constexpr size_t kRowStateBytes = kPassRows * 64;  // the state of rows, before the candidates
constexpr int slices_of(int vocab) {
    return tiles_of(vocab, kSliceIds);
}

struct ScratchLayout {
    size_t quantised, partials, rankings, logits, place_scales, place_columns, arrived, tickets,
        split_sums;  // offsets in bytes; the packed columns come first
    size_t partial_floats;
    int split_sum_count;  // partial sums of kBlockRows rows and 8 tokens
    size_t bytes;
};

inline ScratchLayout lay_out_scratch(const Limits& limits, const SplitPlan& plan) {
    const auto aligned = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
    const size_t pass_tiles = size_t(tiles_of(kPassRows, kTokenTile));
    const size_t widest = size_t(limits.widest);
    ScratchLayout layout;
    layout.quantised = aligned(pass_tiles * size_t(float_tiles(limits.widest)) * kFloatColumnBytes +
                               kRowScaleBytes);
    const size_t places = size_t(limits.places);
    layout.partials = layout.quantised + aligned(std::max(size_t(kPassRows), places) *
                                                 (widest / kGroup) * sizeof(BlockI8G32));
    // Attention takes as many rows at a time as fit, at least one.
    const size_t chunks = size_t(tiles_of(std::max(limits.context, 1), kPageSize)) + 1;
    const size_t row_floats = chunks * size_t(limits.heads) * (size_t(limits.head_dim) + 2);
    constexpr size_t kMaxFloats = size_t(16) << 20;
    const size_t rows = std::clamp<size_t>(kMaxFloats / std::max<size_t>(row_floats, 1), 1,
                                           size_t(std::clamp(limits.rows, 1, kPassRows)));
    layout.partial_floats = rows * row_floats;
    layout.rankings = layout.partials + aligned(layout.partial_floats * sizeof(float));
    layout.logits =
        layout.rankings + kRowStateBytes +
        size_t(kPassRows) * size_t(slices_of(limits.vocab)) * (kMaxTopK + 1) * sizeof(uint64_t);
    const size_t logit_rows = size_t(std::min(limits.rows, kPassRows));
    layout.place_scales =
        layout.logits + aligned(logit_rows * size_t(limits.vocab) * sizeof(float));
    const size_t place_tiles = (places + kTokenTile - 1) / kTokenTile;
    layout.place_columns = layout.place_scales + aligned(place_tiles * kTokenTile * sizeof(float));
    layout.arrived = layout.place_columns +
                     aligned(place_tiles * size_t(float_tiles(limits.widest)) * kFloatColumnBytes);
    // This takes weights to have about as many rows as columns.
    const int parts = tiles_of(limits.widest, kSumPart);
    const int blocks = std::min(tiles_of(limits.widest, kBlockRows) * parts, kMaxSplitBlocks);
    const int tokens = std::min(limits.rows, kPassRows);
    layout.split_sum_count = parts > 1 ? blocks * token_tiles(tokens) : 0;
    layout.split_sum_count =
        std::max(layout.split_sum_count, plan.float_sum_count(token_tiles(kPassRows)));
    layout.tickets = layout.arrived + aligned(kMaxSplitBlocks * sizeof(unsigned));
    layout.split_sums = layout.tickets + aligned(kMaxTickets * sizeof(unsigned));
    layout.bytes = layout.split_sums + size_t(layout.split_sum_count) * kPartialSumBytes;
    return layout;
}

}  // namespace aerie::cuda
