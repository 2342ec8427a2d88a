// The folder of the repository: the source tree, or $AERIE_TEST_ROOT, which has the same
// subfolders.
#pragma once

#include <filesystem>

namespace aerie::test {

std::filesystem::path repository_dir();
std::filesystem::path models_dir();
std::filesystem::path test_data_dir();

}  // namespace aerie::test
