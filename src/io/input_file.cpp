// Reading at any place with pread, and small text files.
#include "io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "core/error.h"

namespace aerie {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
    throw Error(path.string() + ": " + std::generic_category().message(error));
}

size_t regular_file_size(int descriptor, const std::filesystem::path& path) {
    struct stat info = {};
    if (::fstat(descriptor, &info) != 0) fail(path, errno);
    if (!S_ISREG(info.st_mode)) throw Error(path.string() + ": not a regular file");
    return size_t(info.st_size);
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path)
    // O_NONBLOCK: a FIFO must be refused, not waited for.
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail(path, errno);
    try {
        size_bytes_ = regular_file_size(descriptor_, path);
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

InputFile::~InputFile() {
    ::close(descriptor_);
}

void InputFile::read(size_t at, std::span<std::byte> out) const {
    constexpr size_t kMostAtOnce = size_t(1) << 30;  // Linux reads less than 2 GiB a call
    while (!out.empty()) {
        const ssize_t got =
            ::pread(descriptor_, out.data(), std::min(out.size(), kMostAtOnce), off_t(at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(path_, errno);
        if (got == 0) {
            throw Error(path_.string() + ": ends at byte " + std::to_string(at) +
                        "; it has become shorter while it was in use");
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
    return text;
}

}  // namespace aerie
