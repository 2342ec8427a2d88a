// Rows of q and k: GGUF files of architecture "llama" store them in another order than aerie.
#pragma once

#include <cstddef>

namespace aerie {

// The order of the rows in a head. RoPE rotates pairs of elements of q and k. Here, as in Hugging
// Face's files, element i pairs with i + head_dim / 2: all first elements of pairs, then all second
// ones (halves). Files of architecture "llama" have the rows that make these elements permuted, so
// that neighbours pair: 0 with 1, 2 with 3 (pairs). Other architectures have halves in files too.
//
// The index, in a tensor in pairs, of row `row` of the tensor in halves; head_dim is even.
inline size_t row_in_pairs(size_t row, size_t head_dim) {
    const size_t head = row / head_dim, in_head = row % head_dim, half = head_dim / 2;
    return head * head_dim + in_head % half * 2 + in_head / half;
}
// The reverse.
inline size_t row_in_halves(size_t row, size_t head_dim) {
    const size_t head = row / head_dim, in_head = row % head_dim;
    return head * head_dim + in_head / 2 + in_head % 2 * (head_dim / 2);
}

}  // namespace aerie
