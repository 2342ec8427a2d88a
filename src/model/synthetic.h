// Models of random weights: which tensors a shape has, and their values as a function of seed, name
// and place, so that any part can be made at any time by any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "model/config.h"

namespace aerie {

struct TensorShape {
    std::string name;
    std::vector<int64_t> shape;
    // Of an expert: the tensor that may hold those of all, with one dimension more.
    std::string stack = {};
    int in_stack = 1;
    bool is_router = false;

    int64_t elements() const;
};

// The tensors of a target and of an EAGLE head for it, under the names that are published. An
// EAGLE-3 head's d2t and t2d, which hold no weights, are not among them.
std::vector<TensorShape> target_tensors(const ModelConfig& config);
std::vector<TensorShape> head_tensors(const ModelConfig& config);

// Throws Error if a target's files have a bias that its configuration does not ask for: without it
// the model would say something else.
void refuse_other_biases(const ModelConfig& config, const Checkpoint& checkpoint);

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
    std::vector<uint16_t> halves_;  // the values that occur, evenly likely
    std::vector<float> floats_;
};

// A checkpoint that lies in no file: a tensor is made when it is read.
Checkpoint random_checkpoint(const std::string& name, const std::vector<TensorShape>& tensors,
                             DType type, uint64_t seed);

// What the files of a head of random weights hold: of an EAGLE-3 head no embedding, which is its
// target's, but d2t and t2d where its vocabulary is a part of that.
std::vector<NamedTensor> published_tensors(const ModelConfig& head, DType type);
// Elements [first, ...) of d2t or t2d: ids spread evenly over the target's. False: the tensor is
// neither.
bool fill_ids(const ModelConfig& head, const NamedTensor& tensor, int64_t first,
              std::span<std::byte> out);
// A checkpoint of them that lies in no file.
Checkpoint random_head(const std::string& name, const ModelConfig& head, DType type, uint64_t seed);

}  // namespace aerie
