// Compiled pipelines on disk, in the user's cache directory: a checksum, then what the driver gave.
// A file that is damaged or of another device or driver counts as none.
#pragma once

#include <string>
#include <vector>

#include "vulkan/instance.h"

namespace aerie::vulkan {

// In the folder; one for each device and driver.
std::string pipeline_file_path(const std::string& folder, const Traits& traits);
// Empty if there is no sound one.
std::vector<char> read_pipeline_file(const std::string& path);
// All of it or nothing; that it cannot be written is no error.
void write_pipeline_file(const std::string& path, const std::vector<char>& data);

}  // namespace aerie::vulkan
