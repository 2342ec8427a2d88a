// The configuration in a GGUF file, in the form of a Hugging Face config.json.
#pragma once

#include <map>
#include <string>

#include "io/gguf/gguf.h"
#include "io/gguf/names.h"
#include "io/json.h"

namespace aerie {

// The value of general.architecture. Throws Error naming the file if it is unknown.
GgufArchitecture architecture_of(const Gguf& gguf);

// Elements of an attention head. Throws Error if the file does not say, or the number is odd.
int gguf_head_dim(const Gguf& gguf);

// Maps members of gguf_config's result to the file's own keys, for errors.
std::map<std::string, std::string> gguf_key_names(const Gguf& gguf);

// The file's configuration. Sizes are not checked any further; RoPE's factors are a list. Throws
// Error for what a config.json cannot express or aerie does not implement.
Json gguf_config(const Gguf& gguf);

// As a generation_config.json: the ids that end a text, and how to sample if the file says so.
Json gguf_generation(const Gguf& gguf);

}  // namespace aerie
