// Sizes of the models and sessions that run on a device. Scratch is allocated for them, and each
// device has an upper bound for them.
#pragma once

#include <climits>
#include <string>

#include "core/rows.h"

namespace aerie {

struct Limits {
    int rows = 0;    // most rows of a pass
    int top_k = 0;   // most candidates of a row
    int widest = 0;  // most columns of an activation
    int vocab = 0;
    int context = 0;  // most positions of a sequence, draft slots included
    int heads = 0;
    int queries = 0;  // most query heads of one kv head
    int head_dim = 0;
    int places = 0;  // most rows of a pass, times the experts that each row chooses

    bool operator==(const Limits&) const = default;
};

// The limits of a device that has no bounds of its own.
constexpr Limits kAnySize = {.rows = INT_MAX,
                             .top_k = kMaxTopK,
                             .widest = INT_MAX,
                             .vocab = INT_MAX,
                             .context = INT_MAX,
                             .heads = INT_MAX,
                             .queries = INT_MAX,
                             .head_dim = INT_MAX,
                             .places = INT_MAX};

// The larger of both for each size, so that scratch serves both.
Limits largest(const Limits& a, const Limits& b);

// Throws Error if a limit in `wanted` exceeds `most`. The message says that `source` (a file, an
// option) needs it, and that `device` allows less.
void check_limits(const Limits& wanted, const Limits& most, const std::string& source,
                  const std::string& device);

}  // namespace aerie
