// Files that appear at once or not at all.
#include "core/replaced_file.h"

#include <sys/stat.h>

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

fs::perms mode_of(const fs::path& path) {
    return fs::status(path).permissions();
}

// The mode that a new file gets under this process's umask.
fs::perms usual_mode(const TestFolder& folder) {
    return mode_of(folder.write("usual", ""));
}

TEST(ReplacedFile, PrivateFilesAreTheOwnersAlone) {
    const TestFolder folder;
    const fs::path path = folder.path() / "talk";
    const ReplacedFile file(path, FileAccess::owner);
    file.commit([&](const ReplacedFile::Write& write) {
        for (const auto& entry : fs::directory_iterator(folder.path()))
            EXPECT_EQ(entry.status().permissions(), fs::perms(0600)) << "while it is written";
        write("secret");
    });
    EXPECT_EQ(mode_of(path), fs::perms(0600));
    ReplacedFile(folder.path() / "page").commit("for all");
    EXPECT_EQ(mode_of(folder.path() / "page"), usual_mode(folder));
}

TEST(ReplacedFile, TheModeOfAReplacedFileIsKept) {
    const TestFolder folder;
    const fs::path path = folder.write("file", "old");
    for (const FileAccess access : {FileAccess::as_usual, FileAccess::owner})
        for (const int mode : {0600, 0640, 0644, 0660, 0755, 0400}) {
            fs::permissions(path, fs::perms(mode));
            ReplacedFile(path, access).commit([&](const ReplacedFile::Write& write) {
                write("new");
                for (const auto& entry : fs::directory_iterator(folder.path()))
                    if (entry.path() != path) {
                        EXPECT_EQ(entry.status().permissions(), fs::perms(0600));
                    }
            });
            EXPECT_EQ(mode_of(path), fs::perms(mode));
        }
    EXPECT_EQ(read_text(path, 100), "new");
}

// Only root and members of several groups can check this.
TEST(ReplacedFile, TheGroupOfAReplacedFileIsKept) {
    const TestFolder folder;
    const fs::path path = folder.write("file", "old");
    const gid_t other = ::getegid() + 1;
    if (::chown(path.c_str(), uid_t(-1), other) != 0) GTEST_SKIP() << "this user has one group";
    for (const FileAccess access : {FileAccess::as_usual, FileAccess::owner}) {
        fs::permissions(path, fs::perms(0640));
        ReplacedFile(path, access).commit("new");
        struct stat info = {};
        ASSERT_EQ(::stat(path.c_str(), &info), 0);
        EXPECT_EQ(info.st_gid, other);
        EXPECT_EQ(mode_of(path), fs::perms(0640));
    }
}

// Another user may have put the file there in order to read what replaces it.
TEST(ReplacedFile, PrivateOnesTakeNothingOfAnotherUsersFile) {
    const TestFolder folder;
    const fs::path path = folder.write("file", "old");
    fs::permissions(path, fs::perms(0666));
    if (::chown(path.c_str(), ::geteuid() + 1, gid_t(-1)) != 0)
        GTEST_SKIP() << "only root can give a file away";
    ReplacedFile(path, FileAccess::owner).commit("secret");
    EXPECT_EQ(mode_of(path), fs::perms(0600));
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
