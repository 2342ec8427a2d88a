// The rows of a pass: each has a token, a place in its sequence and the history that it attends to.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdint>

#include "core/tensor.h"

namespace aerie {

constexpr int kPageSize = 64;            // slots of a KV page, positions of a chunk of attention
constexpr int kMaxDepth = 32;            // most ancestors of a row in a draft tree
constexpr int kMaxNodes = 64;            // most nodes of a verified tree, root included
constexpr int kMaxTopK = 32;             // most candidates of a draft row
constexpr int kMaxFrontier = kMaxNodes;  // most rows of one draft level

// A row's history in logical order is: KV slots 0 .. prefix-1, then path[0 .. position-prefix-1],
// then its own slot. In a prefill the prefix includes earlier rows of the same pass. A padding row
// has slot -1, writes nothing and is never read.
struct Row {
    int32_t token = 0;
    int32_t position = 0;
    int32_t sequence = 0;
    int32_t slot = 0;    // KV slot that this row writes
    int32_t prefix = 0;  // committed positions that it attends to
    int32_t path[kMaxDepth] = {};

    int depth() const { return position - prefix; }
};
constexpr int kRowInts = sizeof(Row) / sizeof(int32_t);

// The first position that a row attends to with this window; a window of 0 has all positions.
constexpr int first_seen(int position, int window) {
    return window > 0 && position >= window ? position + 1 - window : 0;
}
// The most chunks that a window overlaps.
constexpr int chunks_of_window(int window) {
    return (window - 2 + kPageSize) / kPageSize + 1;
}

// A row of plain text: it attends to all positions before it, each in the slot of the same number.
inline Row causal_row(int token, int position, int sequence = 0) {
    Row row;
    row.token = token;
    row.sequence = sequence;
    row.position = row.slot = row.prefix = position;
    return row;
}

// The row of `token` below `parent`, in slot prefix + draft_slot. If the parent is the newest
// committed row, the child's prefix is one position longer; else the parent's slot joins the
// child's path.
inline Row child_row(const Row& parent, bool is_committed, int token, int draft_slot) {
    Row child = parent;
    child.token = token;
    child.position = parent.position + 1;
    if (is_committed) {
        child.prefix = child.position;
    } else {
        assert(parent.depth() < kMaxDepth);
        child.path[parent.depth()] = parent.slot;
    }
    child.slot = child.prefix + draft_slot;
    return child;
}

// The number of rows, at most `most`, to which padding rows fill a pass on a device that records,
// so that it records few different numbers of rows.
constexpr int recorded_rows(int rows, int most) {
    int wanted = rows;
    if (rows > 32)
        wanted = (rows + 15) / 16 * 16;
    else if (rows > 1)
        wanted = rows <= 8 ? 8 : rows <= 16 ? 16 : 32;
    return wanted < most ? wanted : rows < most ? most : rows;
}
constexpr Row kPaddingRow = {.slot = -1};

// A block of rows on the device: I32 [count, kRowInts].
struct Rows {
    Tensor block;

    int count() const { return block.rows; }
    Rows range(int first, int n) const { return {block.row_range(first, n)}; }
};

// One drafted token in the table of a growing tree; on the device 4 words each.
struct Candidate {
    int32_t token = 0;
    int32_t parent = -1;  // index in the table; -1: the root
    float value = 0;      // candidates are ranked by it (op Beam)
    float log_prob = 0;   // log-probability given the path
};
constexpr int kCandidateInts = sizeof(Candidate) / sizeof(int32_t);

// The order in which candidates a and b of a table are chosen, as in EAGLE-2's reference: value
// descending, index ascending, NaN last.
inline bool better(const Candidate* table, int a, int b) {
    const float x = table[a].value, y = table[b].value;
    if (std::isnan(x) || std::isnan(y))
        return std::isnan(x) == std::isnan(y) ? a < b : !std::isnan(x);
    return x != y ? x > y : a < b;
}

}  // namespace aerie
