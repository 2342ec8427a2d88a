// Models of Hugging Face's Hub, for the commands (src/hub).
#pragma once

#include <filesystem>
#include <string>

#include "io/repository.h"

namespace aerie {

// Whether the name asks for a model of the Hub: "hf:ORG/NAME:QUANT", "hf.co/ORG/NAME:QUANT" as
// Ollama spells it, or the address of its page.
inline bool is_of_hub(const std::string& name) {
    return !without_hub_prefix(name).empty();
}

// The path of that model in the Hugging Face cache; downloads what the cache lacks, unless
// `offline` or HF_HUB_OFFLINE forbids it. Shows progress on stderr. Throws Error, UsageError.
std::filesystem::path fetch_from_hub(const std::string& name, bool offline);

}  // namespace aerie
