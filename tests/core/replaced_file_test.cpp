// Files that appear at once or not at all.
#include "core/replaced_file.h"

#include "io/damage.h"
#include "io/input_file.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TestFolder;

int files_in(const fs::path& folder) {
    return int(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ReplacedFile, AppearsAtTheCommit) {
    const TestFolder folder;
    const fs::path path = folder.write("page", "old");
    ReplacedFile file(path);
    EXPECT_EQ(read_text(path, 100), "old");
    file.commit("new text");
    EXPECT_EQ(read_text(path, 100), "new text");
    EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(ReplacedFile, LeavesNothingWithoutOne) {
    const TestFolder folder;
    const ReplacedFile file(folder.path() / "page");
    EXPECT_EQ(files_in(folder.path()), 0) << "a program that is killed meanwhile leaves nothing";
}

TEST(ReplacedFile, KeepsALink) {
    const TestFolder folder;
    const fs::path path = folder.write("page", "old");
    fs::create_symlink(path, folder.path() / "link");
    ReplacedFile(folder.path() / "link").commit("new");
    EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
    EXPECT_EQ(read_text(path, 100), "new");
}

TEST(ReplacedFile, WritesToADeviceDirectly) {
    ReplacedFile("/dev/null").commit("text");
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(ReplacedFile, RefusesEarly) {
    const TestFolder folder;
    EXPECT_EQ(error_of([&] { ReplacedFile file(folder.path() / "absent" / "page"); }),
              (folder.path() / "absent" / "page").string() +
                  ": cannot be written: No such file or directory");
    EXPECT_NE(error_of([&] { ReplacedFile file(folder.path()); }).find("Is a directory"),
              std::string::npos);
    EXPECT_NE(error_of([&] { ReplacedFile("/dev/full").commit("text"); }).find("No space"),
              std::string::npos);
}

}  // namespace
}  // namespace aerie
