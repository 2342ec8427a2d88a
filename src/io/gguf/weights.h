// The weights of a GGUF file under their Hugging Face names, in aerie's types.
#pragma once

#include <memory>

#include "io/checkpoint.h"
#include "io/gguf/gguf.h"

namespace aerie {

// All tensors except the factors of RoPE. Rows of q and k are in our order (io/gguf/rotary.h), each
// expert is a tensor of its own, and a head's target ids are stored minus their indices. Throws
// Error for a tensor that the architecture does not have or that does not consist of whole heads.
Checkpoint gguf_weights(const std::filesystem::path& path, std::shared_ptr<const Gguf> gguf);

}  // namespace aerie
