// GGUF's element types as types that we compute with.
#pragma once

#include <span>
#include <string>

#include "core/dtype.h"
#include "io/gguf_blocks.h"

namespace aerie {

// Whole blocks in another type: their own, F32 or Q8_0. Q4_0, Q5_0 and IQ4_NL become Q8_0 as they
// are, the others with an error below 0.5 % of a group's largest value; a group with a NaN or an
// infinity has scale NaN. `out` is as long as the values take. Throws Error naming `what`.
void convert(GgmlType type, std::span<const std::byte> blocks, DType to, std::span<std::byte> out,
             const std::string& what);

}  // namespace aerie
