// A device's memory that fails when a test says so: the one that open_device gives this program.
#pragma once

#include <cstddef>

namespace aerie::test {

// The n-th request from now on fails, counted from 1, once; 0: none does.
void fail_device(size_t n);
// Requests since then.
size_t device_requests();

}  // namespace aerie::test
