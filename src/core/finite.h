// Checks that the values of a file are finite numbers.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"

namespace aerie {

// Returns false if a value is NaN or infinite, or becomes so when converted to `as`. For quantised
// types only the scales and mins are checked.
bool all_finite(std::span<const std::byte> data, DType type, DType as);

}  // namespace aerie
