// Sums over the tensors that are there.
#include "model/loading.h"

#include <algorithm>
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

size_t read_bytes(const NamedTensor& tensor, std::optional<DType> as) {
    if (!is_quantised(tensor.dtype) || as.value_or(tensor.dtype) == tensor.dtype)
        return tensor.data.size_bytes;
    return size_bytes(DType::F32, elements_in(tensor.dtype, tensor.data.size_bytes));
}

size_t loading_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                     std::optional<DType> as) {
    std::string stack;
    size_t read = 0, loaded = 0, most = 0;
    for (const TensorShape& wanted : tensors) {
        const NamedTensor* tensor = checkpoint.find(wanted.name);
        if (!tensor) continue;
        if (stack != stack_name(wanted.name)) read = 0;
        stack = stack_name(wanted.name);
        read += read_bytes(*tensor, as);
        loaded += sum(matrix_bytes(checkpoint, {wanted}, as)) + vector_bytes(checkpoint, {wanted});
        most = std::max(most, read + loaded);
    }
    return most;
}

}  // namespace aerie
