// Where a row of a pass lies in the KV cache, and the history that it attends to.
#pragma once

#include "backend/ops.h"
#include "cpu/memory.h"

namespace aerie::cpu {

inline const Row& row_of(const Rows& rows, int index) {
    return *row<Row>(rows.block, index);
}

inline size_t cache_row(const KvLayer& kv, int sequence, int slot) {
    const int32_t* pages = row<int32_t>(kv.page_table, sequence);
    return size_t(pages[slot / kPageSize]) * kPageSize + size_t(slot % kPageSize);
}

inline History history(const Row& row, const KvLayer& kv, int window) {
    if (row.slot < 0)
        return {
            .position = -1, .first = 0, .prefix = 0, .path = nullptr, .slot = -1, .pages = nullptr};
    return {.position = row.position,
            .first = first_seen(row.position, window),
            .prefix = row.prefix,
            .path = row.path,
            .slot = row.slot,
            .pages = aerie::cpu::row<int32_t>(kv.page_table, row.sequence)};
}

inline std::byte* element(const Tensor& t, size_t row_index, int column) {
    return row<std::byte>(t, int(row_index)) + size_bytes(t.dtype, size_t(column));
}

}  // namespace aerie::cpu
