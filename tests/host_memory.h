// operator new and delete for test programs that link host_memory.cpp. They count the memory, and
// fail when a test requests it.
#pragma once

#include <cstddef>
#include <new>

namespace aerie::test {

// Starts the counts below.
void begin_count();
// The n-th request from here on, counted from 1, fails once; 0: no request fails. Also starts the
// counts.
void fail_host(size_t n);

// Since the last start: the requests, and the most bytes held at once beyond those held at the
// start (exact with one thread).
size_t host_requests();
size_t most_since_begin();

// Runs the action with its first request refused, then with its second one, and so on, until it
// makes fewer requests. Returns the number of refused requests.
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
