// Guard bytes between the parts of an allocation. With AddressSanitizer any access to them is an
// error; without it there are none.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace aerie {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kGuardBytes = 256;  // behind each part
inline void poison(const void* memory, size_t bytes) {
    __asan_poison_memory_region(memory, bytes);
}
inline void unpoison(const void* memory, size_t bytes) {
    __asan_unpoison_memory_region(memory, bytes);
}
#else
constexpr size_t kGuardBytes = 0;
inline void poison(const void*, size_t) {}
inline void unpoison(const void*, size_t) {}
#endif

}  // namespace aerie
