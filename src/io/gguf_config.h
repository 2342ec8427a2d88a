// What a GGUF file says of its model, as the config.json of a Hugging Face model would.
#pragma once

#include <map>
#include <string>

#include "io/gguf.h"
#include "io/gguf_names.h"
#include "io/json.h"

namespace aerie {

// general.architecture. Throws Error naming the file if it is not known.
GgufArchitecture architecture_of(const Gguf& gguf);

// Elements of an attention head. Throws Error if the file does not say or it is no even number.
int gguf_head_dim(const Gguf& gguf);

// What the file calls the members of that config.json, for errors.
std::map<std::string, std::string> gguf_key_names(const Gguf& gguf);

// The sizes are those of the file, not checked any further; RoPE's factors are a list. Throws Error
// for what cannot be said there.
Json gguf_config(const Gguf& gguf);

// generation_config.json: the ids that end a text, and how to sample if the file says so.
Json gguf_generation(const Gguf& gguf);

}  // namespace aerie
