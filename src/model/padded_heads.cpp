// Tensors are recognised by the ends of their names, which targets and heads share.
#include "model/padded_heads.h"

#include <vector>

#include "core/error.h"

namespace aerie {

namespace {

enum class Heads { queries, keys, values, one };

struct Ending {
    const char* ending;
    Heads heads;
};
constexpr Ending kEndings[] = {
    {"self_attn.q_proj.weight", Heads::queries}, {"self_attn.q_proj.bias", Heads::queries},
    {"self_attn.k_proj.weight", Heads::keys},    {"self_attn.k_proj.bias", Heads::keys},
    {"self_attn.v_proj.weight", Heads::values},  {"self_attn.v_proj.bias", Heads::values},
    {"self_attn.q_norm.weight", Heads::one},     {"self_attn.k_norm.weight", Heads::one}};

int rows_in_file(const ModelConfig& config, Heads heads) {
    if (heads == Heads::one) return config.size_of_head();
    return heads == Heads::queries ? config.file_attention_columns() : config.file_kv_columns();
}

}  // namespace

int rows_in_file(const ModelConfig& config, const std::string& name) {
    for (const auto& [ending, heads] : kEndings)
        if (name.ends_with(ending)) return rows_in_file(config, heads);
    return 0;
}

void pad_heads(Checkpoint& tensors, const ModelConfig& config) {
    const int size = config.size_of_head(), padded = config.attention.head_dim;
    if (size == padded) return;
    std::vector<std::pair<std::string, Heads>> found;
    for (const auto& [name, tensor] : tensors.tensors())
        for (const auto& [ending, heads] : kEndings)
            if (name.ends_with(ending) && !tensors.is_spread(name)) found.emplace_back(name, heads);
    for (const auto& [name, heads] : found) {
        const NamedTensor& tensor = *tensors.find(name);
        const int rows = rows_in_file(config, heads);
        if (tensor.shape.empty() || tensor.shape[0] != rows)
            throw Error(tensors.describe(tensor) + " has shape " + tensor.shape_text() +
                        ", expected " + std::to_string(rows) + " rows: heads of " +
                        std::to_string(size) +
                        " elements ('head_dim'), which run as the next multiple of 16");
        tensors.spread_rows(name, {size, padded, heads != Heads::values});
    }
}

}  // namespace aerie
