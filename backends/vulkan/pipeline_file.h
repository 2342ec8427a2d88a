// Compiled pipelines on disk, in the user's cache directory: a checksum, then the driver's data. A
// file that is damaged, or of another device or driver, counts as absent.
#pragma once

#include <string>
#include <vector>

#include "vulkan/instance.h"

namespace aerie::vulkan {

// The file in `folder` for this device and driver.
std::string pipeline_file_path(const std::string& folder, const Traits& traits);
// The driver's data; empty if the file is missing or damaged.
std::vector<char> read_pipeline_file(const std::string& path);
// Writes the file completely or not at all; failure is no error.
void write_pipeline_file(const std::string& path, const std::vector<char>& data);

}  // namespace aerie::vulkan
