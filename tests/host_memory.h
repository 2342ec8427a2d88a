// operator new and delete of test programs that link host_memory.cpp: they count, and fail where
// told to.
#pragma once

#include <cstddef>
#include <new>

namespace aerie::test {

// Counts from here on.
void begin_count();
// The n-th request from here on fails, counted from 1, once; 0: none does. Begins the count too.
void fail_host(size_t n);

// Since then: requests, and the most bytes held at once beyond those held at that time (exact with
// one thread).
size_t host_requests();
size_t most_since_begin();

// Runs the action with its first request refused, then with its second one, and so on until it needs
// no more. Returns how many were refused.
template <typename Action>
size_t refuse_each(const Action& action) {
    for (size_t n = 1;; ++n) {
        fail_host(n);
        try {
            action();
            fail_host(0);
            return n - 1;
        } catch (const std::bad_alloc&) {
            fail_host(0);
        }
    }
}

}  // namespace aerie::test
