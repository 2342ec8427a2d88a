// Files that are being written: they are gone unless finished, and gone after their writer.
#include "core/pending_file.h"

#include "io/damage.h"
#include "io/input_file.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TestFolder;
using Kind = PendingFile::Kind;

int files_in(const fs::path& folder) {
    return int(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(PendingFile, AppearsWhenItIsFinished) {
    const TestFolder folder;
    const fs::path place = folder.write("file", "old");
    PendingFile file(place, Kind::file);
    file.write("new ");
    file.write("text");
    EXPECT_EQ(read_text(place, 100), "old");
    file.finish();
    EXPECT_EQ(read_text(place, 100), "new text");
    PendingFile made(folder.path() / "made", Kind::folder);
    fs::create_directory(made.path() / "sub");
    fs::copy_file(place, made.path() / "sub" / "copy");
    made.finish();
    EXPECT_EQ(read_text(folder.path() / "made/sub/copy", 100), "new text");
    EXPECT_EQ(files_in(folder.path()), 2);
}

TEST(PendingFile, IsGoneUnlessFinished) {
    const TestFolder folder;
    {
        const PendingFile file(folder.path() / "file", Kind::file);
        const PendingFile made(folder.path() / "made", Kind::folder);
        fs::copy_file(file.path(), made.path() / "copy");
        EXPECT_EQ(files_in(folder.path()), 2);
    }
    EXPECT_EQ(files_in(folder.path()), 0);
}

TEST(PendingFile, OfALivingMakerStaysAndThatOfADeadOneGoes) {
    const TestFolder folder;
    PendingFile first(folder.path() / "file", Kind::file),
        second(folder.path() / "file", Kind::file);
    EXPECT_TRUE(fs::exists(first.path()));
    folder.write("file.partial-0123456789abcdef", "abandoned");
    folder.write("file.partial-0000000000000000/sub/file", "abandoned");
    for (const char* other : {"file.partial-0123456789abcdeF", "file.partial-012345678",
                              "other.partial-0123456789abcdef", "file.partial"})
        folder.write(other, "of others");
    fs::create_symlink("other.partial-0123456789abcdef",
                       folder.path() / "file.partial-1111111111111111");
    const PendingFile third(folder.path() / "file", Kind::file);
    EXPECT_FALSE(fs::exists(folder.path() / "file.partial-0123456789abcdef"));
    EXPECT_FALSE(fs::exists(folder.path() / "file.partial-0000000000000000"));
    EXPECT_EQ(files_in(folder.path()), 3 + 4 + 1) << "the living, those of others, the link";
    first.write("1");
    first.finish();
    second.write("2");
    second.finish();
    EXPECT_EQ(read_text(folder.path() / "file", 10), "2");
}

TEST(PendingFile, NamesThePlaceThatCannotBeWritten) {
    const TestFolder folder;
    for (const Kind kind : {Kind::file, Kind::folder})
        EXPECT_EQ(error_of([&] { PendingFile(folder.path() / "absent" / "x", kind); }),
                  (folder.path() / "absent" / "x").string() +
                      ": cannot be written: No such file or directory");
}

}  // namespace
}  // namespace aerie
