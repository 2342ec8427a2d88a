// Models of Hugging Face's hub, for the commands (src/hub).
#pragma once

#include <filesystem>
#include <string>

namespace aerie {

// Whether the name asks for a model of the hub: "hf:ORG/NAME:QUANT".
inline bool is_of_hub(const std::string& name) {
    return name.starts_with("hf:");
}

// The path of that model in the Hugging Face cache; downloads what the cache lacks, unless
// `offline` or HF_HUB_OFFLINE forbids it. Shows progress on stderr. Throws Error, UsageError.
std::filesystem::path fetch_from_hub(const std::string& name, bool offline);

}  // namespace aerie
