// printf to a string.
#include "format.h"

#include <cstdarg>
#include <cstdio>

namespace aerie {

std::string format(const char* pattern, ...) {
    char text[600];
    std::va_list arguments;
    va_start(arguments, pattern);
    std::vsnprintf(text, sizeof(text), pattern, arguments);
    va_end(arguments);
    return text;
}

std::string short_number(double value) {
    return format(value >= 1000 ? "%.0f" : "%.3g", value);
}

}  // namespace aerie
