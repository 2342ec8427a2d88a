// Where the repository lies: in the source tree, or in $AERIE_TEST_ROOT, which has the same folders.
#pragma once

#include <filesystem>

namespace aerie::test {

std::filesystem::path repository_dir();
std::filesystem::path models_dir();
std::filesystem::path test_data_dir();

}  // namespace aerie::test
