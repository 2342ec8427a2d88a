// Where a command may write something large and new.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>

namespace aerie {

// Throws Error if one of the files or folders is there already, or less than `bytes` are free on
// the first one's disk.
void check_place(std::initializer_list<std::filesystem::path> made, size_t bytes);

}  // namespace aerie
