// What loading the tensors of a model takes, before anything is loaded.
#pragma once

#include "model/synthetic.h"
#include "model/weights.h"

namespace aerie {

// Bytes that those of the tensors which are there take on the device, were all matrices stored as
// `as`. What a file has besides is not loaded.
size_t model_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                   std::optional<DType> as);

// File data that is in memory at once while a model is loaded.
size_t loading_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors);

}  // namespace aerie
