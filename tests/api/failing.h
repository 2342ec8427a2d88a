// Memory that fails when a test says so: the host's by operator new, the device's by the backend
// that open_device gives this program.
#pragma once

#include <cstddef>

namespace aerie::test {

// The n-th request from now on fails, counted from 1, once; 0: none does.
void fail_host(size_t n);
void fail_device(size_t n);
// Requests since then.
size_t host_requests();
size_t device_requests();

}  // namespace aerie::test
