// Whether the numbers of a file are numbers.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"

namespace aerie {

// False if one of these values is NaN or an infinity, or becomes one as `as`. Of quantised types
// the scales are looked at.
bool all_finite(std::span<const std::byte> data, DType type, DType as);

}  // namespace aerie
