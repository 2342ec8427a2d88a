// Files read at any place, and small text files.
#include "io/input_file.h"

#include <sys/stat.h>

#include "io/damage.h"

namespace aerie {
namespace {

using test::error_of;
using test::TestFolder;

std::string text_of(const InputFile& file) {
    std::string text(file.size_bytes(), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    return text;
}

TEST(InputFile, ReadsAnyPart) {
    const TestFolder folder;
    const InputFile file(folder.write("a", "hello"));
    EXPECT_EQ(text_of(file), "hello");
    char part[2] = {};
    file.read(3, std::as_writable_bytes(std::span(part)));
    EXPECT_EQ(std::string(part, 2), "lo");
}

TEST(InputFile, EmptyFileHasNothing) {
    const TestFolder folder;
    EXPECT_EQ(text_of(InputFile(folder.write("a", ""))), "");
}

TEST(InputFile, FollowsLinkToRegularFile) {
    const TestFolder folder;
    std::filesystem::create_symlink(folder.write("a", "x"), folder.path() / "link");
    EXPECT_EQ(text_of(InputFile(folder.path() / "link")), "x");
}

TEST(InputFile, RefusesWhatIsNoRegularFile) {
    const TestFolder folder;
    const auto fifo = folder.path() / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    for (const std::filesystem::path& path : {fifo, folder.path(), folder.path() / "missing"}) {
        const std::string message = error_of([&] { const InputFile file(path); });
        EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    }
    EXPECT_NE(error_of([] { const InputFile file("/dev/zero"); }), "");
}

TEST(InputFile, ThatBecameShorterIsAnError) {
    const TestFolder folder;
    const auto path = folder.write("a", std::string(10'000, 'x'));
    const InputFile file(path);
    std::filesystem::resize_file(path, 5'000);
    EXPECT_EQ(error_of([&] { text_of(file); }),
              path.string() + ": ends at byte 5000; it has become shorter while it was in use");
}

TEST(InputFile, NamesWhatGitLfsLeftInItsPlace) {
    const TestFolder folder;
    const std::string pointer =
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
        "size 12345\n";
    const auto path = folder.write("model.safetensors", pointer);
    EXPECT_EQ(
        error_of([&] { const InputFile file(path); }),
        path.string() + ": a git-lfs pointer, not the file itself; fetch it with 'git lfs pull'");
    // A text that only mentions a pointer, and a file that is too large to be one.
    for (const std::string& text : {"The " + pointer, pointer + std::string(1024, 'x')})
        EXPECT_EQ(text_of(InputFile(folder.write("a", text))), text);
}

TEST(ReadText, ReadsUpToTheLimit) {
    const TestFolder folder;
    const auto path = folder.write("a", "12345");
    EXPECT_EQ(read_text(path, 5), "12345");
    EXPECT_EQ(error_of([&] { read_text(path, 4); }),
              path.string() + ": 5 bytes, expected at most 4");
    EXPECT_NE(error_of([&] { read_text(folder.path() / "missing", 4); }), "");
    EXPECT_EQ(read_text(folder.write("b", "\xEF\xBB\xBFx\xEF\xBB\xBF"), 9), "x\xEF\xBB\xBF")
        << "a byte order mark is one at the start only";
}

}  // namespace
}  // namespace aerie
