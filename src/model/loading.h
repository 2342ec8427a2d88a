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

// What reading a tensor to store it as `as` takes.
size_t read_bytes(const NamedTensor& tensor, std::optional<DType> as);

// The most that is in memory while they are loaded in this order: what is read, and what is on the
// device by then.
size_t loading_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                     std::optional<DType> as);

}  // namespace aerie
