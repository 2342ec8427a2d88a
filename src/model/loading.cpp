// Sums over the tensors that are there.
#include "model/loading.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace aerie {

namespace {

// What a checkpoint has of a tensor that is wanted.
struct Found {
    const NamedTensor* tensor = nullptr;  // or that of all experts
    size_t parts = 1;                     // that it has of them

    size_t bytes() const { return tensor->data.size_bytes / parts; }

    bool is_matrix() const {
        return tensor->shape.size() >= 2 &&
               (is_float(tensor->dtype) || is_quantised(tensor->dtype));
    }
};

Found find(const Checkpoint& checkpoint, const TensorShape& wanted) {
    if (const NamedTensor* tensor = checkpoint.find(wanted.name)) return {tensor};
    const NamedTensor* all = wanted.stack.empty() ? nullptr : checkpoint.find(wanted.stack);
    return {all, size_t(std::max(wanted.in_stack, 1))};
}

// Matrices that are uploaded as one have one name here.
std::string stack_name(const TensorShape& wanted) {
    const std::string& name = wanted.stack.empty() ? wanted.name : wanted.stack;
    constexpr std::pair<const char*, const char*> kStacks[] = {
        {"q_proj", "qkv"},        {"k_proj", "qkv"},      {"v_proj", "qkv"},
        {"gate_proj", "gate_up"}, {"up_proj", "gate_up"}, {"experts.w1", "gate_up"},
        {"experts.w3", "gate_up"}};
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
        const Found found = find(checkpoint, wanted);
        if (!found.tensor || !found.is_matrix()) continue;
        const std::vector<int64_t>& shape = found.tensor->shape;
        const int64_t cols = shape.back(), rows = shape[shape.size() - 2];
        const DType dtype = found.tensor->dtype;
        const DType stored = wanted.is_router ? router_type(dtype) : as.value_or(dtype);
        types[stored] += weight_bytes(wanted.name, rows, cols, stored);
    }
    return types;
}

size_t vector_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors) {
    size_t total = 0;
    for (const TensorShape& wanted : tensors)
        if (const Found found = find(checkpoint, wanted); found.tensor && !found.is_matrix())
            total += size_bytes(DType::F32, elements_in(found.tensor->dtype, found.bytes()));
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
    struct Stack {
        size_t read = 0, loaded = 0;
    };
    std::vector<Stack> stacks;
    std::map<std::string, size_t> places;
    for (const TensorShape& wanted : tensors) {
        const Found found = find(checkpoint, wanted);
        if (!found.tensor) continue;
        const auto [place, is_new] = places.emplace(stack_name(wanted), stacks.size());
        if (is_new) stacks.emplace_back();
        Stack& stack = stacks[place->second];
        stack.read += read_bytes(*found.tensor, as) / found.parts;
        stack.loaded +=
            sum(matrix_bytes(checkpoint, {wanted}, as)) + vector_bytes(checkpoint, {wanted});
    }
    size_t loaded = 0, most = 0;
    for (const Stack& stack : stacks) {
        loaded += stack.loaded;
        most = std::max(most, stack.read + loaded);
    }
    return most;
}

}  // namespace aerie
