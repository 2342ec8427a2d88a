// A part of a target's vocabulary that is enough to draft with: a smaller LM head makes a level
// cheaper, and a token outside of it is only never drafted (FR-Spec, Zhao 2025).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace aerie {

// Reads how often each of `vocab` tokens occurs. A line is a token's id and its count; tokens
// without a line occur nowhere. Throws Error naming file and line.
std::vector<uint64_t> read_token_counts(const std::filesystem::path& path, int vocab);
// The text that read_token_counts reads: tokens that occur, the most frequent first.
std::string token_counts_text(std::span<const uint64_t> counts);

// Ascending ids of `size` tokens: those of `always`, then the most frequent ones, ties to the
// lowest id. Without counts the order of ids takes their place: a tokenizer merged frequent tokens
// first.
std::vector<int32_t> draft_vocabulary(int size, int vocab, std::span<const int> always,
                                      std::span<const uint64_t> counts);

}  // namespace aerie
