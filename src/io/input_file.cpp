// Reading at any place, and small text files.
#include "io/input_file.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

Cause cause_of(int error) {
    return error == ENOENT || error == ENOTDIR ? Cause::not_found : Cause::inaccessible;
}

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
    throw Error(path.string() + ": " + std::generic_category().message(error), cause_of(error));
}

// Whether the file is the pointer that git-lfs leaves in place of a file that it did not fetch.
bool is_lfs_pointer(const InputFile& file) {
    constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
    constexpr size_t kMaxBytes = 1024;  // The specification has this limit.
    if (file.size_bytes() < kBegin.size() || file.size_bytes() >= kMaxBytes) return false;
    std::string begin(kBegin.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(begin)));
    return begin == kBegin;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
    const int error = platform::open_to_read(path, file_, size_bytes_);
    if (error == EISDIR || error == EINVAL)
        throw Error(path.string() + ": not a regular file", Cause::inaccessible);
    if (error) fail(path, error);
    if (is_lfs_pointer(*this))
        throw Error(path.string() +
                        ": a git-lfs pointer, not the file itself; fetch it with 'git lfs pull'",
                    Cause::not_found);
    first_stamp_ = stamp();
}

platform::FileStamp InputFile::stamp() const {
    platform::FileStamp now;
    if (const int error = platform::stamp(file_, now)) fail(path_, error);
    return now;
}

void InputFile::read(size_t at, std::span<std::byte> out) const {
    while (!out.empty()) {
        const ptrdiff_t got = platform::read_at(file_, at, out);
        if (got < 0) fail(path_, int(-got));
        if (got == 0) {
            throw Error(path_.string() + ": ends at byte " + std::to_string(at) +
                            "; it has become shorter while it was in use",
                        Cause::damaged);
        }
        at += size_t(got);
        out = out.subspan(size_t(got));
    }
}

std::string read_text(const std::filesystem::path& path, size_t max_bytes) {
    const InputFile file(path);
    if (file.size_bytes() > max_bytes) {
        throw Error(path.string() + ": " + std::to_string(file.size_bytes()) +
                    " bytes, expected at most " + std::to_string(max_bytes));
    }
    std::string text(file.size_bytes(), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    return std::string(without_byte_order_mark(text));
}

}  // namespace aerie
