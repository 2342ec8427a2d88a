// The device that open_device gives this program: its memory fails when a test says so.
#pragma once

#include <cstddef>

namespace aerie::test {

// The n-th request from now on, counted from 1, fails once; with 0 none fails.
void fail_device(size_t n);
// Number of requests since fail_device().
size_t device_requests();

}  // namespace aerie::test
