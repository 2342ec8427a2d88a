// Folders are searched and files are put into them while memory runs out: there is an exception,
// whichever request is refused, and no half-written file.
#include <new>

#include "core/pending_file.h"
#include "core/replaced_file.h"
#include "host_memory.h"
#include "io/damage.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

// Names that are long enough for the heap, and leftovers of killed programs.
void fill(const TestFolder& folder) {
    for (int i = 0; i < 20; ++i)
        folder.write("a file with quite a long name, number " + std::to_string(i), "x");
    folder.write("file.partial-0123456789abcdef", "abandoned");
    folder.write("file.partial-0000000000000000/a folder with quite a long name/file", "abandoned");
}

TEST(FolderMemory, EntriesAreVisited) {
    const TestFolder folder;
    fill(folder);
    int seen = 0;
    const size_t refused = refuse_each([&] {
        seen = 0;
        EXPECT_EQ(platform::each_entry(folder.path(), [&](const fs::path&) { ++seen; }), 0);
    });
    EXPECT_GE(refused, 20u) << "a request each";
    EXPECT_EQ(seen, 22);
    EXPECT_EQ(platform::each_entry(folder.path() / "absent", [](const fs::path&) {}), ENOENT);
}

TEST(FolderMemory, FilesAreReplacedOrNot) {
    const TestFolder folder;
    const fs::path path = folder.write("file", "old");
    fill(folder);
    const size_t refused = refuse_each([&] {
        try {
            ReplacedFile(path).commit("new");
        } catch (const std::bad_alloc&) {
            EXPECT_NE(fs::file_size(path), 0u);
            throw;
        }
    });
    EXPECT_GT(refused, 10u);
    EXPECT_EQ(fs::file_size(path), 3u);
    for (const auto& entry : fs::directory_iterator(folder.path()))
        EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
}

TEST(FolderMemory, FoldersAppearOrNot) {
    const TestFolder folder;
    fill(folder);
    const fs::path place = folder.path() / "made";
    const size_t refused = refuse_each([&] {
        PendingFile made(place, PendingFile::Kind::folder);
        fs::create_directory(made.path() / "a folder with quite a long name");
        fs::copy_file(folder.path() / "a file with quite a long name, number 1",
                      made.path() / "a folder with quite a long name" / "copy");
        made.finish();
    });
    EXPECT_GT(refused, 5u);
    EXPECT_TRUE(fs::exists(place / "a folder with quite a long name" / "copy"));
    for (const auto& entry : fs::directory_iterator(folder.path()))
        EXPECT_EQ(entry.path().string().find("made.partial"), std::string::npos) << entry.path();
}

TEST(FolderMemory, TreesAreRemovedWithoutAny) {
    const TestFolder folder;
    fill(folder);
    const fs::path outside = folder.write("outside/file", "stays");
    const fs::path tree = folder.path() / "file.partial-0000000000000000";
    fs::create_directory_symlink(folder.path() / "outside", tree / "link");
    fail_host(1);
    platform::remove_tree(tree);
    const size_t requests = host_requests();
    fail_host(0);
    EXPECT_EQ(requests, 0u);
    EXPECT_FALSE(fs::exists(tree));
    EXPECT_TRUE(fs::exists(outside)) << "a link is not followed";
}

}  // namespace
}  // namespace aerie::test
