// Mapped files and small text files.
#include "io/file_map.h"

#include <sys/stat.h>

#include "io/damage.h"

namespace aerie {
namespace {

using test::error_of;
using test::TestFolder;

std::string text_of(const FileMap& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(FileMap, MapsWholeFile) {
    const TestFolder folder;
    const auto path = folder.write("a", "hello");
    EXPECT_EQ(text_of(*FileMap::open(path)), "hello");
    EXPECT_EQ(FileMap::open(path)->path(), path);
}

TEST(FileMap, EmptyFileIsEmptySpan) {
    const TestFolder folder;
    EXPECT_TRUE(FileMap::open(folder.write("a", ""))->bytes().empty());
}

TEST(FileMap, FollowsLinkToRegularFile) {
    const TestFolder folder;
    std::filesystem::create_symlink(folder.write("a", "x"), folder.path() / "link");
    EXPECT_EQ(text_of(*FileMap::open(folder.path() / "link")), "x");
}

TEST(FileMap, RefusesWhatIsNoRegularFile) {
    const TestFolder folder;
    const auto fifo = folder.path() / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    for (const std::filesystem::path& path : {fifo, folder.path(), folder.path() / "missing"}) {
        const std::string message = error_of([&] { FileMap::open(path); });
        EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    }
    EXPECT_NE(error_of([] { FileMap::open("/dev/zero"); }), "");
}

TEST(ReadText, ReadsUpToTheLimit) {
    const TestFolder folder;
    const auto path = folder.write("a", "12345");
    EXPECT_EQ(read_text(path, 5), "12345");
    EXPECT_EQ(error_of([&] { read_text(path, 4); }),
              path.string() + ": 5 bytes, expected at most 4");
    EXPECT_NE(error_of([&] { read_text(folder.path() / "missing", 4); }), "");
}

}  // namespace
}  // namespace aerie
