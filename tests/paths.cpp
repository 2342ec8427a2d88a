// The only test file that is compiled with an absolute path, so that the compiler cache can serve
// all other files to any checkout.
#include "paths.h"

#include <cstdlib>

namespace aerie::test {

namespace fs = std::filesystem;

fs::path repository_dir() {
    const char* root = std::getenv("AERIE_TEST_ROOT");
    return root ? root : AERIE_REPOSITORY_DIR;
}

fs::path models_dir() {
    return repository_dir() / "models";
}

fs::path test_data_dir() {
    return repository_dir() / "tests" / "data";
}

}  // namespace aerie::test
