// Options for a head in addition to its files.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "draft/heads/head_config.h"

namespace aerie {

struct ModelFiles;

// Facts about a head that its files do not say, or say wrongly.
struct HeadOptions {
    std::vector<int> taps = {};  // layer inputs that an EAGLE-3 head reads; empty: by its files
    std::optional<double> theta = {};  // base of the head's RoPE
    // Size of an EAGLE-1/2 head's reduced vocabulary, 0: all; and a file of token counts that
    // selects it.
    int vocab = 0;
    std::filesystem::path token_counts = {};
};

// Writes the options into the head's configuration. Throws UsageError if one does not apply to its
// kind.
void apply_options(const HeadOptions& options, const ModelConfig& target, HeadConfig& head);

// The tokens of the head's vocabulary, ascending; empty: all. Throws Error, UsageError.
std::vector<int32_t> choose_draft_ids(const HeadOptions& options, const ModelFiles& files);

}  // namespace aerie
