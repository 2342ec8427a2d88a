// The weights of a GGUF file, by the names that Hugging Face gives them, in types that we have.
#pragma once

#include <memory>

#include "io/checkpoint.h"
#include "io/gguf.h"

namespace aerie {

// All of them, but the factors of RoPE. q and k have their rows in our order (io/gguf_rotary.h),
// experts are tensors of their own, and a head's ids are what they are more than their places.
// Throws Error for a tensor that the architecture does not have or that is not of whole heads.
Checkpoint gguf_weights(const std::filesystem::path& path, std::shared_ptr<const Gguf> gguf);

}  // namespace aerie
