// The memory limit of the container that this process runs in.
#pragma once

#include <cstddef>
#include <filesystem>

namespace aerie {

// The least memory, in bytes, that Linux control groups allow this process: its own group and all
// groups around it, of version 2 (memory.max) or 1 (memory.limit_in_bytes). SIZE_MAX if no limit is
// known. `root`: the folder that contains /proc and the mounted file systems.
size_t memory_limit(const std::filesystem::path& root = "/");

}  // namespace aerie
