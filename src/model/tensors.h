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

// The tensors of a target under their published names.
std::vector<TensorShape> target_tensors(const ModelConfig& config);

// The parts of a decoder layer whose names begin with `prefix`: attention over `input` columns with
// biases of the whole layer and the norm before the FFN; and an FFN without experts.
void add_attention(std::vector<TensorShape>& tensors, const ModelConfig& config,
                   const std::string& prefix, int input);
void add_ffn(std::vector<TensorShape>& tensors, const ModelConfig& config,
             const std::string& prefix);

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
