// What loading the tensors of a model takes, before anything is loaded.
#pragma once

#include "model/synthetic.h"
#include "model/weights.h"

namespace aerie {

// Bytes that those matrices of the tensors which are there take on the device, stored as `as` or as
// they are. What a file has besides is not loaded.
WeightTypes matrix_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                         std::optional<DType> as);

// The same of all others.
size_t vector_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors);

size_t sum(const WeightTypes& types);

}  // namespace aerie
