// printf to a string.
#include "format.h"

#include <cstdarg>
#include <cstdio>

namespace aerie {

std::string format(const char* pattern, ...) {
    std::va_list arguments, again;
    va_start(arguments, pattern);
    va_copy(again, arguments);
    std::string text(size_t(std::vsnprintf(nullptr, 0, pattern, arguments)), '\0');
    std::vsnprintf(text.data(), text.size() + 1, pattern, again);
    va_end(again);
    va_end(arguments);
    return text;
}

std::string short_number(double value) {
    return format(value >= 1000 ? "%.0f" : "%.3g", value);
}

std::string megabytes(uint64_t bytes) {
    const double mega = double(bytes) / 1e6;
    return mega >= 1000 ? format("%.2f GB", mega / 1000) : format("%.1f MB", mega);
}

}  // namespace aerie
