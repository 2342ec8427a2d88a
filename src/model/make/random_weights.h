// Random weights: values as a function of seed, name and index, so that any thread can make any
// part at any time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "model/config.h"
#include "model/tensors.h"

namespace aerie {

// Matrices hold N(0, 0.02), norm weights are 1: activations stay near 1 in every layer.
class RandomWeights {
  public:
    RandomWeights(DType type, uint64_t seed);  // F32, F16 or BF16

    DType type() const { return type_; }
    // Values [first, first + n) of the tensor `name`. Uses every core.
    void fill(const std::string& name, int64_t first, std::span<std::byte> out) const;

  private:
    template <class T>
    void fill_as(const std::vector<T>& quantiles, uint64_t key, int64_t first,
                 std::span<std::byte> out) const;

    DType type_;
    uint64_t seed_;
    std::vector<uint16_t> halves_;  // the values that occur, all equally likely
    std::vector<float> floats_;
};

// A checkpoint without files: a tensor is made when it is read.
Checkpoint random_checkpoint(const std::string& name, const std::vector<TensorShape>& tensors,
                             DType type, uint64_t seed);

// The tensors in the files of a head with random weights. For an EAGLE-3 head there is no
// embedding, which is the target's, but d2t and t2d if its vocabulary is a part of the target's.
std::vector<NamedTensor> published_tensors(const ModelConfig& head, DType type);
// Fills elements [first, ...) of d2t or t2d, with ids spread evenly over the target's vocabulary.
// False: the tensor is neither.
bool fill_ids(const ModelConfig& head, const NamedTensor& tensor, int64_t first,
              std::span<std::byte> out);
// A checkpoint of these tensors without files.
Checkpoint random_head(const std::string& name, const ModelConfig& head, DType type, uint64_t seed);

}  // namespace aerie
