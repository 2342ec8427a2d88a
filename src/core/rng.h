// Counter-based noise: a pure function of (seed, position, token), so that the draw at a position
// does not depend on drafts (docs/drafting.md section 10). Philox4x32-10 (Salmon et al. 2011).
#pragma once

#include <array>
#include <cstdint>

namespace aerie {

// Ten rounds: four random words from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter);

// Standard Gumbel noise for one token at one position. 16 neighbouring tokens have 16 counters: the
// noise comes from word (token / 16) % 4 of counter {token / 64 * 16 + token % 16, position, 0, 0}.
// Computed with f32 multiplies and adds alone, so every backend can reproduce the bits.
float gumbel(uint64_t seed, int position, int token);

// The Gumbel noise of one random word, which falls from 22.87 for 0 to -3.13 for 2^32 - 1. It is
// within 1e-6 of the exact value for all 2^32 words, which were all checked.
float gumbel_of(uint32_t word);

// Uses of random numbers beside the noise; each has counters of its own.
enum class Purpose : uint32_t { draft = 1, accept = 2 };

// A uniform number in [0, 1) with 53 bits, from counter {index, position, purpose, 0}, which no
// noise uses.
double uniform(uint64_t seed, int position, Purpose purpose, int index);

}  // namespace aerie
