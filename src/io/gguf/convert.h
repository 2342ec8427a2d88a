// Converts GGUF's element types to the types that aerie computes with.
#pragma once

#include <span>
#include <string>

#include "core/dtype.h"
#include "io/gguf/blocks.h"

namespace aerie {

// Converts whole blocks to their own type, to F32 or to Q8_0. Q4_0, Q5_0 and IQ4_NL become Q8_0
// exactly, other types with an error below 0.5 % of a group's largest value; a group with a NaN or
// an infinity gets the scale NaN. `out` has the exact size of the result. Throws Error naming
// `what`.
void convert(GgmlType type, std::span<const std::byte> blocks, DType to, std::span<std::byte> out,
             const std::string& what);

}  // namespace aerie
