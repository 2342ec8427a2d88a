// Inputs that the fuzz targets start from: small files and requests that are read without an error.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace aerie::fuzz {

// By the name of the target. Some are files of `repository`.
std::map<std::string, std::vector<std::string>> seeds_of_targets(
    const std::filesystem::path& repository);

}  // namespace aerie::fuzz
