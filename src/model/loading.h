// The memory that the tensors of a model take, known before anything is loaded.
#pragma once

#include "model/synthetic.h"
#include "model/weights.h"

namespace aerie {

// Device bytes of the matrices among `tensors` that the checkpoint has, by the type in which they
// are stored: `as`, or their own. Other tensors of a file are not loaded.
WeightTypes matrix_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                         std::optional<DType> as);

// The same for all tensors that are no matrices.
size_t vector_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors);

size_t sum(const WeightTypes& types);

}  // namespace aerie
