// Reorders rows as bytes: they are whole blocks, so no value is touched.
#include "io/gguf_rotary.h"

#include <cstring>
#include <string>

#include "core/error.h"

namespace aerie {

void halves_from_pairs(std::span<const std::byte> pairs, std::span<std::byte> halves,
                       size_t head_dim, size_t row_bytes) {
    size_t head_bytes = 0;
    const bool fits = head_dim > 0 && head_dim % 2 == 0 && row_bytes > 0 &&
                      !__builtin_mul_overflow(head_dim, row_bytes, &head_bytes) &&
                      pairs.size() == halves.size() && pairs.size() % head_bytes == 0;
    if (!fits) {
        throw Error(std::to_string(pairs.size()) + " bytes of q or k are no whole heads of " +
                    std::to_string(head_dim) + " rows of " + std::to_string(row_bytes) + " bytes");
    }
    for (size_t row = 0; row < pairs.size() / row_bytes; ++row) {
        std::memcpy(halves.data() + row * row_bytes,
                    pairs.data() + row_in_pairs(row, head_dim) * row_bytes, row_bytes);
    }
}

}  // namespace aerie
