// The names of tensors in GGUF files, and what Hugging Face calls them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace aerie {

// Those of general.architecture whose tensors we know. "llama" is Mistral and Mixtral too; the last
// is a draft head.
enum class GgufArchitecture { Llama, Qwen2, Qwen3, Qwen3Moe, Eagle3 };
std::optional<GgufArchitecture> find_architecture(std::string_view name);

enum class GgufRole {
    Weight,   // one tensor here and there
    Rotary,   // the same, but its rows are to be put in our order: io/gguf_rotary.h
    Experts,  // shape [experts, ...]: each of the parts is one tensor there
    Ids,      // the target's id of each of a head's; there it says how much larger each is
    Factors,  // rope_freqs: what RoPE's frequencies are divided by; there it is in config.json
};

struct GgufName {
    GgufRole role = GgufRole::Weight;
    std::string name;    // there: "model.layers.0.mlp.up_proj.weight"; of experts what stands
    std::string ending;  // before and after the expert's number; of factors nothing

    std::string of_expert(int64_t expert) const { return name + std::to_string(expert) + ending; }
};

// What Hugging Face calls the tensor `name`; nothing: the architecture has no such tensor.
std::optional<GgufName> hugging_face_name(GgufArchitecture architecture, std::string_view name);

// The other way round; of an expert the name of the stack, and which of it.
struct GgufPlace {
    std::string name;
    bool is_rotary = false;
    int expert = -1;  // -1: none
};
std::optional<GgufPlace> gguf_place(GgufArchitecture architecture, std::string_view name);

// general.architecture.
std::string_view name(GgufArchitecture architecture);

}  // namespace aerie
