// Counter-based noise: a pure function of (seed, position, token), so that a position's draw is the
// same whatever was drafted before it (eagle.md section 10). Philox4x32-10 (Salmon et al. 2011).
#pragma once

#include <array>
#include <cstdint>

namespace aerie {

// Ten rounds; four random words for one 128-bit counter and 64-bit key.
std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter);

// Standard Gumbel noise of one token at one position. Tokens are laid out so that 16 neighbours are
// 16 counters: word (token / 16) % 4 of counter {token / 64 * 16 + token % 16, position, 0, 0}.
// Built from multiplies and adds in f32 alone, so every backend can reproduce the bits.
float gumbel(uint64_t seed, int position, int token);

// The same of one random word: 22.87 of 0, falling to -3.13 of 2^32 - 1; within 1e-6 of the exact
// value everywhere (all 2^32 words were checked).
float gumbel_of(uint32_t word);

// What numbers are for that are no noise of a position; each use has its own.
enum class Purpose : uint32_t { draft = 1, accept = 2 };

// A number of [0, 1) with 53 bits: of counter {index, position, purpose, 0}, which no noise has.
double uniform(uint64_t seed, int position, Purpose purpose, int index);

}  // namespace aerie
