// How often a test of random cases runs.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace aerie::test {

// `usual` rounds, or $AERIE_TEST_RUNS where that is fewer: scripts/check_sanitized.sh sets it.
inline int rounds(int usual) {
    const char* most = std::getenv("AERIE_TEST_RUNS");
    return most ? std::min(usual, std::atoi(most)) : usual;
}

}  // namespace aerie::test
