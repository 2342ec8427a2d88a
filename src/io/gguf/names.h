// Names of tensors in GGUF files, and their names in Hugging Face files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace aerie {

// Values of general.architecture with known tensors. "llama" is Mistral and Mixtral too; the last
// one is a draft head.
enum class GgufArchitecture { Llama, Qwen2, Qwen3, Qwen3Moe, Eagle3 };
std::optional<GgufArchitecture> find_architecture(std::string_view name);

enum class GgufRole {
    Weight,   // one tensor in both formats
    Rotary,   // the same, but rows must be reordered: io/gguf/rotary.h
    Experts,  // shape [experts, ...]: in Hugging Face files each part is one tensor
    Ids,      // target id per draft id; Hugging Face files have the difference of the two
    Factors,  // rope_freqs: divisors of RoPE's frequencies; Hugging Face has them in config.json
};

struct GgufName {
    GgufRole role = GgufRole::Weight;
    // The Hugging Face name: "model.layers.0.mlp.up_proj.weight". For experts these are the parts
    // before and after the expert's number; for factors both are empty.
    std::string name;
    std::string ending;

    std::string of_expert(int64_t expert) const { return name + std::to_string(expert) + ending; }
};

// The Hugging Face name of tensor `name`; nullopt: the architecture has no such tensor.
std::optional<GgufName> hugging_face_name(GgufArchitecture architecture, std::string_view name);

// The reverse. For an expert, `name` is that of the stack, and `expert` the index in it.
struct GgufPlace {
    std::string name;
    bool is_rotary = false;
    int expert = -1;  // -1: none
};
std::optional<GgufPlace> gguf_place(GgufArchitecture architecture, std::string_view name);

// The value of general.architecture.
std::string_view name(GgufArchitecture architecture);
// The names of all targets: "llama, qwen2".
std::string target_names();
// The model_type of a config.json: "qwen3_moe". "llama" stands for several.
std::string_view model_type(GgufArchitecture architecture);

}  // namespace aerie
