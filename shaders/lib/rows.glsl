// Rows of the KV cache. The including shader binds `pages`.
#include "row_fields.glsl"
const uint kPageSize = 64u;

uint cache_row(uint pages_at, uint slot) {
    return uint(pages[pages_at + slot / kPageSize]) * kPageSize + slot % kPageSize;
}
