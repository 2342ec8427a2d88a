// The tensors of a model: their names and shapes, declared once, and the device memory that they
// take, known before anything is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "model/config.h"
#include "model/weights.h"

namespace aerie {

struct TensorShape {
    std::string name;
    std::vector<int64_t> shape;
    // For an expert's matrix: the tensor that may hold those of all experts, and their number.
    std::string stack = {};
    int in_stack = 1;
    bool is_router = false;

    int64_t elements() const;
};

// The tensors of a target, and of an EAGLE head for it, under their published names. d2t and t2d of
// an EAGLE-3 head, which hold no weights, are not among them.
std::vector<TensorShape> target_tensors(const ModelConfig& config);
std::vector<TensorShape> head_tensors(const ModelConfig& config);

// Throws Error if a target's files have a bias that its configuration does not ask for: without it
// the model would compute something else.
void refuse_other_biases(const ModelConfig& config, const Checkpoint& checkpoint);

// Device bytes of the matrices among `tensors` that the checkpoint has, by the type in which they
// are stored: `as`, or their own. Other tensors of a file are not loaded.
WeightTypes matrix_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                         std::optional<DType> as);

// The same for all tensors that are not matrices.
size_t vector_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors);

size_t sum(const WeightTypes& types);

}  // namespace aerie
