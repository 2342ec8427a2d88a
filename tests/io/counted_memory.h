// Counts what a test program takes by operator new: linked in by tests that bound it.
#pragma once

#include <cstddef>

namespace aerie::test {

void begin_count();
// The most bytes held at once since then, beyond those held at that time.
size_t most_since_begin();

}  // namespace aerie::test
