// Sums over the tensors that are there.
#include "model/loading.h"

#include <algorithm>
#include <map>
#include <utility>

namespace aerie {

namespace {

bool is_matrix(const NamedTensor& tensor) {
    return tensor.shape.size() == 2 && (is_float(tensor.dtype) || is_quantised(tensor.dtype));
}

// Matrices that are uploaded as one have one name here.
std::string stack_name(const std::string& name) {
    constexpr std::pair<const char*, const char*> kStacks[] = {{"q_proj", "qkv"},
                                                               {"k_proj", "qkv"},
                                                               {"v_proj", "qkv"},
                                                               {"gate_proj", "gate_up"},
                                                               {"up_proj", "gate_up"}};
    for (const auto& [part, stack] : kStacks)
        if (const size_t at = name.find(part); at != std::string::npos)
            return name.substr(0, at) + stack;
    return name;
}

}  // namespace

WeightTypes matrix_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                         std::optional<DType> as) {
    WeightTypes types;
    for (const TensorShape& wanted : tensors) {
        const NamedTensor* tensor = checkpoint.find(wanted.name);
        if (!tensor || !is_matrix(*tensor)) continue;
        const DType stored = as.value_or(tensor->dtype);
        types[stored] += weight_bytes(wanted.name, *tensor, stored);
    }
    return types;
}

size_t vector_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors) {
    size_t total = 0;
    for (const TensorShape& wanted : tensors)
        if (const NamedTensor* tensor = checkpoint.find(wanted.name); tensor && !is_matrix(*tensor))
            total += size_bytes(DType::F32, elements_in(tensor->dtype, tensor->data.size_bytes));
    return total;
}

size_t sum(const WeightTypes& types) {
    size_t total = 0;
    for (const auto& [type, bytes] : types) total += bytes;
    return total;
}

size_t loading_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors) {
    std::map<std::string, size_t> stacks;
    size_t most = 0;
    for (const TensorShape& wanted : tensors)
        if (const NamedTensor* tensor = checkpoint.find(wanted.name)) {
            size_t& stack = stacks[stack_name(wanted.name)];
            most = std::max(most, stack += tensor->data.size_bytes);
        }
    return most;
}

}  // namespace aerie
