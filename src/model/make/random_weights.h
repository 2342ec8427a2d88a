// Random weights: values as a function of seed, name and index, so that any thread can make any
// part at any time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
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

// A tensor as a file of this type has it.
NamedTensor described(const TensorShape& tensor, DType type);

// A checkpoint without files: a tensor is made when it is read.
Checkpoint random_checkpoint(const std::string& name, const std::vector<TensorShape>& tensors,
                             DType type, uint64_t seed);

}  // namespace aerie
