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

// The head for this repository, which is the target itself or GGUF files of it: "NAME-GGUF" of
// anybody, where NAME is the target's. Nothing if the table has none.
std::optional<KnownHead> known_head_for(const RepositoryName& target,
                                        std::span<const KnownHead> heads);

// Whether a folder in the Hugging Face cache has the weights that the table means; also if their
// hash is not known.
bool has_known_weights(const KnownHead& known, const std::filesystem::path& folder);

}  // namespace aerie
