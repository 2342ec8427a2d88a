// Numbers as reports print them.
#pragma once

#include <cstdint>
#include <string>

namespace aerie {

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

// With three significant digits: 0.0123, 45.6, 12345.
std::string short_number(double value);

// "98.4 MB", "2.02 GB": by powers of ten, as the hub and file managers count.
std::string megabytes(uint64_t bytes);

}  // namespace aerie
