#include "model/tensors.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <set>

#include "core/error.h"
#include "model/padded_heads.h"
#include "model/target.h"

namespace aerie {

int64_t TensorShape::elements() const {
    int64_t count = 1;
    for (int64_t dim : shape) count *= dim;
    return count;
}

std::vector<TensorShape> tensors_loaded(const ModelConfig& config,
                                        const std::function<void(const WeightLoader&)>& load) {
    std::vector<TensorShape> tensors;
    load(WeightLoader(tensors));
    for (TensorShape& tensor : tensors)
        if (const int rows = rows_in_file(config, tensor.name)) tensor.shape[0] = rows;
    return tensors;
}

namespace {

// The layer of a tensor of the target; -1: it belongs to none.
int layer_of(std::string_view name) {
    constexpr std::string_view kBefore = "model.layers.";
    if (!name.starts_with(kBefore)) return -1;
    int layer = -1;
    const auto [rest, error] =
        std::from_chars(name.data() + kBefore.size(), name.data() + name.size(), layer);
    return error == std::errc::result_out_of_range ? INT_MAX : layer;
}

}  // namespace

void refuse_other_weights(const ModelConfig& config, const Checkpoint& checkpoint) {
    std::set<std::string> known;
    for (const TensorShape& tensor : target_tensors(config)) {
        known.insert(tensor.name);
        known.insert(tensor.stack);
    }
    const auto weight_beside = [](const std::string& bias) {
        return bias.substr(0, bias.size() - std::string_view("bias").size()) + "weight";
    };
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        if (known.contains(name)) continue;
        const auto refuse = [&checkpoint, &tensor = tensor](const std::string& why) {
            throw Error(checkpoint.describe(tensor) + " is there, but the configuration " + why);
        };
        const int layer = layer_of(name);
        if (layer >= config.layers) refuse("has " + std::to_string(config.layers) + " layers");
        if (layer >= 0 && name.ends_with(".weight")) refuse("asks for no such weight");
        if (name.ends_with(".bias") && known.contains(weight_beside(name)))
            refuse("asks for no such bias");
    }
}

namespace {

// The tensor of a checkpoint for one that is wanted.
struct Found {
    const NamedTensor* tensor = nullptr;  // or the stack of all experts
    size_t parts = 1;                     // matrices in that stack

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
        const DType stored = wanted.is_router ? router_type(dtype) : stored_type(*found.tensor, as);
        types[stored] += weight_bytes(checkpoint.describe(*found.tensor), rows, cols, stored);
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

}  // namespace aerie
