// One table of tensor names, in which # is the number of the layer and * that of an expert.
#include "io/gguf/names.h"

#include <algorithm>
#include <array>

namespace aerie {
namespace {

constexpr unsigned bit(GgufArchitecture architecture) {
    return 1u << unsigned(architecture);
}
constexpr unsigned kLlama = bit(GgufArchitecture::Llama), kQwen2 = bit(GgufArchitecture::Qwen2),
                   kQwen3 = bit(GgufArchitecture::Qwen3),
                   kQwen3Moe = bit(GgufArchitecture::Qwen3Moe),
                   kEagle3 = bit(GgufArchitecture::Eagle3),
                   kAll = kLlama | kQwen2 | kQwen3 | kQwen3Moe;

struct ArchitectureRow {
    std::string_view name;
    GgufArchitecture architecture;
    std::string_view model_type;
};
constexpr std::array kArchitectures{
    ArchitectureRow{"llama", GgufArchitecture::Llama, "llama"},
    ArchitectureRow{"qwen2", GgufArchitecture::Qwen2, "qwen2"},
    ArchitectureRow{"qwen3", GgufArchitecture::Qwen3, "qwen3"},
    ArchitectureRow{"qwen3moe", GgufArchitecture::Qwen3Moe, "qwen3_moe"},
    ArchitectureRow{"eagle3", GgufArchitecture::Eagle3, "eagle3"},
};

const ArchitectureRow& row_of(GgufArchitecture architecture) {
    for (const ArchitectureRow& row : kArchitectures)
        if (row.architecture == architecture) return row;
    return kArchitectures[0];
}

// The names without .weight or .bias, in which both end.
struct NameRow {
    std::string_view gguf, hugging_face;
    unsigned architectures = kAll;
    bool has_bias = false;
};
constexpr std::array kNames{
    NameRow{"token_embd", "model.embed_tokens"},
    NameRow{"output_norm", "model.norm"},
    NameRow{"output", "lm_head"},
    NameRow{"rope_freqs", ""},
    NameRow{"blk.#.attn_norm", "model.layers.#.input_layernorm"},
    NameRow{"blk.#.attn_q", "model.layers.#.self_attn.q_proj", kAll, true},
    NameRow{"blk.#.attn_k", "model.layers.#.self_attn.k_proj", kAll, true},
    NameRow{"blk.#.attn_v", "model.layers.#.self_attn.v_proj", kAll, true},
    NameRow{"blk.#.attn_output", "model.layers.#.self_attn.o_proj", kAll, true},
    NameRow{"blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm", kQwen3 | kQwen3Moe},
    NameRow{"blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm", kQwen3 | kQwen3Moe},
    NameRow{"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
    NameRow{"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj", kAll, true},
    NameRow{"blk.#.ffn_up", "model.layers.#.mlp.up_proj", kAll, true},
    NameRow{"blk.#.ffn_down", "model.layers.#.mlp.down_proj", kAll, true},
    // Stacked experts; the first files of Mixtral had one tensor per expert.
    NameRow{"blk.#.ffn_gate_inp", "model.layers.#.block_sparse_moe.gate", kLlama},
    NameRow{"blk.#.ffn_gate_exps", "model.layers.#.block_sparse_moe.experts.*.w1", kLlama},
    NameRow{"blk.#.ffn_down_exps", "model.layers.#.block_sparse_moe.experts.*.w2", kLlama},
    NameRow{"blk.#.ffn_up_exps", "model.layers.#.block_sparse_moe.experts.*.w3", kLlama},
    NameRow{"blk.#.ffn_gate.*", "model.layers.#.block_sparse_moe.experts.*.w1", kLlama},
    NameRow{"blk.#.ffn_down.*", "model.layers.#.block_sparse_moe.experts.*.w2", kLlama},
    NameRow{"blk.#.ffn_up.*", "model.layers.#.block_sparse_moe.experts.*.w3", kLlama},
    NameRow{"blk.#.ffn_gate_inp", "model.layers.#.mlp.gate", kQwen3Moe},
    NameRow{"blk.#.ffn_gate_exps", "model.layers.#.mlp.experts.*.gate_proj", kQwen3Moe},
    NameRow{"blk.#.ffn_down_exps", "model.layers.#.mlp.experts.*.down_proj", kQwen3Moe},
    NameRow{"blk.#.ffn_up_exps", "model.layers.#.mlp.experts.*.up_proj", kQwen3Moe},
    // EAGLE-3 heads, with the names of docs/drafting.md section 1.
    NameRow{"token_embd", "embed_tokens", kEagle3},
    NameRow{"fc", "fc", kEagle3},
    NameRow{"enc.output_norm", "input_norm", kEagle3},
    NameRow{"output_norm", "norm", kEagle3},
    NameRow{"output", "lm_head", kEagle3},
    NameRow{"rope_freqs", "", kEagle3},
    NameRow{"blk.0.attn_norm", "midlayer.input_layernorm", kEagle3},
    NameRow{"blk.0.attn_norm_2", "midlayer.hidden_norm", kEagle3},
    NameRow{"blk.0.attn_q", "midlayer.self_attn.q_proj", kEagle3, true},
    NameRow{"blk.0.attn_k", "midlayer.self_attn.k_proj", kEagle3, true},
    NameRow{"blk.0.attn_v", "midlayer.self_attn.v_proj", kEagle3, true},
    NameRow{"blk.0.attn_output", "midlayer.self_attn.o_proj", kEagle3, true},
    NameRow{"blk.0.ffn_norm", "midlayer.post_attention_layernorm", kEagle3},
    NameRow{"blk.0.ffn_gate", "midlayer.mlp.gate_proj", kEagle3, true},
    NameRow{"blk.0.ffn_up", "midlayer.mlp.up_proj", kEagle3, true},
    NameRow{"blk.0.ffn_down", "midlayer.mlp.down_proj", kEagle3, true},
};

constexpr std::string_view kIds = "d2t";  // the same in both formats

// The numbers in a name, as they are written there.
struct Numbers {
    std::string layer, expert;
};

// Removes a number from the start of `text`: at most 5 digits, no needless zero. Empty: there is
// none.
std::string take_number(std::string_view& text) {
    constexpr size_t kMaxDigits = 5;
    const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string number(text.substr(0, end));
    if (end > kMaxDigits || (end > 1 && number[0] == '0')) return "";
    text.remove_prefix(end);
    return number;
}

bool matches(std::string_view pattern, std::string_view name, Numbers& numbers) {
    for (const char c : pattern) {
        if (c == '#' || c == '*') {
            std::string& number = c == '#' ? numbers.layer : numbers.expert;
            number = take_number(name);
            if (number.empty()) return false;
        } else if (name.empty() || name[0] != c) {
            return false;
        } else {
            name.remove_prefix(1);
        }
    }
    return name.empty();
}

// The row's Hugging Face name with its numbers; it is cut in two where the expert's number is
// unknown.
GgufName filled(const NameRow& row, const Numbers& numbers, std::string_view ending) {
    GgufName result;
    std::string* part = &result.name;
    for (const char c : row.hugging_face) {
        if (c == '#') {
            *part += numbers.layer;
        } else if (c != '*') {
            *part += c;
        } else if (!numbers.expert.empty()) {
            *part += numbers.expert;
        } else {
            result.role = GgufRole::Experts;
            part = &result.ending;
        }
    }
    *part += ending;
    return result;
}

// The tensor's name without .weight or .bias; empty: it has neither.
std::string_view stem_of(std::string_view name) {
    const size_t dot = std::min(name.rfind('.'), name.size());
    const std::string_view ending = name.substr(dot);
    return ending == ".weight" || ending == ".bias" ? name.substr(0, dot) : std::string_view();
}

bool fits(const NameRow& row, GgufArchitecture architecture, std::string_view ending) {
    return (row.architectures & bit(architecture)) && (ending != ".bias" || row.has_bias);
}

bool is_rotary(const NameRow& row, GgufArchitecture architecture) {
    return (bit(architecture) & (kLlama | kEagle3)) &&
           (row.gguf.ends_with(".attn_q") || row.gguf.ends_with(".attn_k"));
}

}  // namespace

std::optional<GgufArchitecture> find_architecture(std::string_view name) {
    for (const ArchitectureRow& row : kArchitectures)
        if (row.name == name) return row.architecture;
    return std::nullopt;
}

std::optional<GgufName> hugging_face_name(GgufArchitecture architecture, std::string_view name) {
    if (architecture == GgufArchitecture::Eagle3 && name == kIds)
        return GgufName{GgufRole::Ids, std::string(kIds), ""};
    const std::string_view stem = stem_of(name), ending = name.substr(stem.size());
    for (const NameRow& row : kNames) {
        Numbers numbers;
        if (stem.empty() || !fits(row, architecture, ending) || !matches(row.gguf, stem, numbers))
            continue;
        if (row.hugging_face.empty()) return GgufName{GgufRole::Factors, "", ""};
        GgufName result = filled(row, numbers, ending);
        if (is_rotary(row, architecture)) result.role = GgufRole::Rotary;
        return result;
    }
    return std::nullopt;
}

std::optional<GgufPlace> gguf_place(GgufArchitecture architecture, std::string_view name) {
    const std::string_view stem = stem_of(name), ending = name.substr(stem.size());
    for (const NameRow& row : kNames) {
        Numbers numbers;
        if (stem.empty() || !fits(row, architecture, ending) ||
            !matches(row.hugging_face, stem, numbers))
            continue;
        GgufPlace place{.name = "", .is_rotary = is_rotary(row, architecture)};
        for (const char c : row.gguf) place.name += c == '#' ? numbers.layer : std::string(1, c);
        place.name += ending;
        if (!numbers.expert.empty()) place.expert = std::stoi(numbers.expert);
        return place;
    }
    return std::nullopt;
}

std::string_view name(GgufArchitecture architecture) {
    return row_of(architecture).name;
}

std::string_view model_type(GgufArchitecture architecture) {
    return row_of(architecture).model_type;
}

std::string target_names() {
    std::string names;
    for (const ArchitectureRow& row : kArchitectures)
        if (row.architecture != GgufArchitecture::Eagle3)
            names += (names.empty() ? "" : ", ") + std::string(row.name);
    return names;
}

}  // namespace aerie
