// Published heads that fit published models: models/heads.json. Entries are added by pull requests.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/repository.h"

namespace aerie {

struct KnownHead {
    RepositoryName target, head;
    // Other names under which the target is published, without an organisation.
    std::vector<std::string> also_named;
    std::string sha256;  // hash of the head's weights; empty: not known
};

// Reads heads.json. Throws Error.
std::vector<KnownHead> read_known_heads(const std::filesystem::path& file);
// The first such file in these folders, then beside bundled models; nothing if there is none.
std::vector<KnownHead> read_known_heads(std::span<const std::filesystem::path> folders);

// The head for the repository of this name: the target itself, or "NAME-GGUF" of any owner, where
// NAME is the target's or one of `also_named`. Case is ignored. Nothing if the table has none, or
// if the name is none of a repository.
std::optional<KnownHead> known_head_for(const std::string& name, std::span<const KnownHead> heads);

// Whether a folder in the Hugging Face cache has the weights that the table means: a file that
// links to the blob of that SHA-256. True if the table gives no hash.
bool has_known_weights(const KnownHead& known, const std::filesystem::path& folder);

}  // namespace aerie
