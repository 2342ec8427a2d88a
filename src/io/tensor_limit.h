// How many tensors a file may have.
#pragma once

#include <cstddef>

namespace aerie {

inline constexpr size_t kMaxTensors = 65'536;  // the same for a file and a checkpoint

}  // namespace aerie
