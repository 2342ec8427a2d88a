// Fields of a Row (core/rows.h), in words, and where its history lies in the cache. The including
// shader binds `rows` and `pages`.
const uint kRowWords = 37u, kRowPosition = 1u, kRowSequence = 2u, kRowSlot = 3u, kRowPrefix = 4u,
           kRowPath = 5u;
const uint kPageSize = 64u;

uint cache_row(uint pages_at, uint slot) {
    return uint(pages[pages_at + slot / kPageSize]) * kPageSize + slot % kPageSize;
}
