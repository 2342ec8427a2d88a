// How a GGUF file says that positions reach further than a model was trained.
#pragma once

#include "io/gguf_values.h"
#include "io/json.h"

namespace aerie {

// As rope_scaling of a config.json; null: nothing is scaled. Throws Error for what is not
// implemented.
Json gguf_scaling(const GgufKeys& keys);

}  // namespace aerie
