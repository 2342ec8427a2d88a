// The tensors of a model: their names and shapes, and the device memory that they take, known
// before anything is loaded.
#pragma once

#include <functional>
#include <vector>

#include "io/checkpoint.h"
#include "model/config.h"
#include "model/weights.h"

namespace aerie {

// The tensors that `load` asks its loader for, with the shapes that they have in the files of a
// model with this configuration. The code that loads a model is the one declaration of its tensors:
// planning, export and random weights read it here.
std::vector<TensorShape> tensors_loaded(const ModelConfig& config,
                                        const std::function<void(const WeightLoader&)>& load);

// The tensors of a target under their published names.
std::vector<TensorShape> target_tensors(const ModelConfig& config);

// Throws Error if a target's files have a layer, a weight of a layer or a bias beside a loaded
// weight for which the configuration does not ask: without it the model would compute something
// else.
void refuse_other_weights(const ModelConfig& config, const Checkpoint& checkpoint);

// Device bytes of the matrices among `tensors` that the checkpoint has, by the type in which they
// are stored: `as`, or their own. Other tensors of a file are not loaded.
WeightTypes matrix_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                         std::optional<DType> as);

// The same for all tensors that are not matrices.
size_t vector_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors);

size_t sum(const WeightTypes& types);

}  // namespace aerie
