// operator new and delete of test programs that link host_memory.cpp: they count, and fail where
// told to.
#pragma once

#include <cstddef>

namespace aerie::test {

// Counts from here on.
void begin_count();
// The n-th request from here on fails, counted from 1, once; 0: none does. Begins the count too.
void fail_host(size_t n);

// Since then: requests, and the most bytes held at once beyond those held at that time (exact with
// one thread).
size_t host_requests();
size_t most_since_begin();

}  // namespace aerie::test
