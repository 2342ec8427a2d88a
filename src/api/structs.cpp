#include "api/structs.h"

namespace aerie::api {

size_t checked_size(const void* given, size_t least, const char* type) {
    constexpr size_t kMost = 1 << 16;  // a larger size was never set
    if (!given) throw UsageError(std::string(type) + " is null");
    size_t size = 0;
    std::memcpy(&size, given, sizeof(size));
    if (size < least || size > kMost)
        throw UsageError(std::string(type) + " has a size of " + std::to_string(size) +
                         " bytes, which no version of it has: begin with " + type + "_init()");
    return size;
}

std::string_view given_text(const char* text, size_t bytes, const char* what) {
    given(text, what);
    return {text, bytes > 0 ? bytes : std::strlen(text)};
}

}  // namespace aerie::api
