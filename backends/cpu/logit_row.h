// Prepares a row of logits for a choice: penalties, mask, and what the filters keep.
#pragma once

#include "core/fixed_vector.h"
#include "cpu/backend.h"

namespace aerie::cpu {

using PathTokens = FixedVector<int32_t, kMaxDepth>;

// Tokens of a row's path below the root, its own included.
PathTokens path_tokens(const Rows& rows, int index);

// A row of logits, its best token, and the temperature.
struct LogitRow {
    const float* logits;
    int vocab;
    const RowChoice& rule;
    ArgMax top;
    double temperature;  // 0: only the best counts
};

// The row after penalties and mask.
LogitRow edited_row(const Kernels& kernels, const Choice& choice, int index, const PathTokens& path,
                    const Scratch& scratch);
// The row after penalties, mask and filters. At temperature 0 only the best token counts, and
// filters are skipped.
LogitRow processed_row(const Kernels& kernels, const Choice& choice, int index,
                       const PathTokens& path, const Scratch& scratch);

}  // namespace aerie::cpu
