// What a container may take of a machine's memory.
#pragma once

#include <cstddef>
#include <filesystem>

namespace aerie {

// The least memory, in bytes, that a control group of Linux allows this process, its own group or
// one around that, of version 2 (memory.max) or 1 (memory.limit_in_bytes). SIZE_MAX: no limit is
// known. `root`: where /proc and the mounted file systems are looked for.
size_t memory_limit(const std::filesystem::path& root = "/");

}  // namespace aerie
