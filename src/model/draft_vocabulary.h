// A part of a target's vocabulary that is enough to draft with: a smaller LM head makes a level
// cheaper, and what is outside of it is only never guessed (FR-Spec, Zhao 2025).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace aerie {

// How often each of `vocab` tokens occurs: a line a token, its id and its count; those that are
// missing occur nowhere. Throws Error naming file and line.
std::vector<uint64_t> read_token_counts(const std::filesystem::path& path, int vocab);
// As it is read; tokens that occur, the most frequent first.
std::string token_counts_text(std::span<const uint64_t> counts);

// Ascending ids of `size` of the tokens: those of `always`, then the most frequent ones, ties to
// the lowest id. Without counts the tokenizer's order stands for them: what it merged first.
std::vector<int32_t> draft_vocabulary(int size, int vocab, std::span<const int> always,
                                      std::span<const uint64_t> counts);

}  // namespace aerie
