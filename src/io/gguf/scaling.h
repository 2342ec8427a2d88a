// RoPE scaling in a GGUF file, for contexts longer than those of the training.
#pragma once

#include "io/gguf/values.h"
#include "io/json.h"

namespace aerie {

// The scaling as rope_scaling of a config.json; null: there is none. Throws Error for kinds that
// are not implemented.
Json gguf_scaling(const GgufKeys& keys);

}  // namespace aerie
