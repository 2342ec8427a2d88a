// Whether the numbers of a file are numbers.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"

namespace aerie {

// False if one of these floats is NaN or an infinity, or becomes one as `as`.
bool all_finite(std::span<const std::byte> data, DType type, DType as);

}  // namespace aerie
