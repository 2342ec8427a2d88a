// A row of logits on its way to a choice: penalties, mask, and what the filters keep.
#pragma once

#include "core/fixed_vector.h"
#include "cpu/backend.h"

namespace aerie::cpu {

using PathTokens = FixedVector<int32_t, kMaxDepth>;

// Those of a row's path below the root, its own included.
PathTokens path_tokens(const Rows& rows, int index);

// A row of logits, its best, and the temperature.
struct LogitRow {
    const float* logits;
    int vocab;
    const RowChoice& rule;
    ArgMax top;
    double temperature;  // 0: only the best counts
};

// Penalties and mask.
LogitRow edited_row(const Kernels& kernels, const Choice& choice, int index, const PathTokens& path,
                    const Scratch& scratch);
// And filters. Temperature 0: only the best counts.
LogitRow processed_row(const Kernels& kernels, const Choice& choice, int index,
                       const PathTokens& path, const Scratch& scratch);

}  // namespace aerie::cpu
