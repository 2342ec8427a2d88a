// Checks the place where a command will write something large and new.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>

namespace aerie {

// Throws Error if one of the files or folders exists already, or if less than `bytes` are free on
// the disk of the first one.
void check_place(std::initializer_list<std::filesystem::path> made, size_t bytes);

}  // namespace aerie
