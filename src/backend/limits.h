// Sizes of the models and sessions that run on a device: scratch is made for them, and each device
// says how far they may go.
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
    int places = 0;  // most rows of a pass, times the experts that each of them chooses

    bool operator==(const Limits&) const = default;
};

// What a device takes of which it says nothing.
constexpr Limits kAnySize = {.rows = INT_MAX,
                             .top_k = kMaxTopK,
                             .widest = INT_MAX,
                             .vocab = INT_MAX,
                             .context = INT_MAX,
                             .heads = INT_MAX,
                             .queries = INT_MAX,
                             .head_dim = INT_MAX,
                             .places = INT_MAX};

// Of each size the larger one: room for both.
Limits largest(const Limits& a, const Limits& b);

// Throws Error where `wanted`, which `source` (a file, an option) asks for, is more than `most`,
// which `device` takes.
void check_limits(const Limits& wanted, const Limits& most, const std::string& source,
                  const std::string& device);

}  // namespace aerie
