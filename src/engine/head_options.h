// What is asked of a head beside its files.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "model/config.h"

namespace aerie {

struct ModelFiles;

// What the user knows of a head better than its files.
struct HeadOptions {
    std::vector<int> taps = {};  // layers whose inputs an EAGLE-3 head reads; empty: as they say
    std::optional<double> theta = {};  // base of its RoPE
    // Tokens that an EAGLE-1/2 head may say, 0: all; counts of tokens that choose them, if any.
    int vocab = 0;
    std::filesystem::path token_counts = {};
};

// Into the head's configuration. Throws UsageError for what is not of its kind.
void apply_options(const HeadOptions& options, const ModelConfig& target, ModelConfig& head);

// The tokens that the head of these files shall say, ascending; empty: all. Throws Error,
// UsageError.
std::vector<int32_t> choose_draft_ids(const HeadOptions& options, const ModelFiles& files);

}  // namespace aerie
