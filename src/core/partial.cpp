// Locked while its maker lives, so that others can tell which ones are abandoned: the system
// releases the lock of a program that was killed.
#include "core/partial.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>

#include "core/error.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

constexpr const char* kMark = ".partial-";
constexpr size_t kDigits = 16;

std::string random_digits() {
    std::random_device random;
    char digits[kDigits + 1];
    std::snprintf(digits, sizeof(digits), "%08x%08x", random(), random());
    return digits;
}

bool is_partial_of(const std::string& name, const std::string& place) {
    const std::string begin = place + kMark;
    return name.size() == begin.size() + kDigits && name.starts_with(begin) &&
           name.find_first_not_of("0123456789abcdef", begin.size()) == std::string::npos;
}

fs::path folder_of(const fs::path& place) {
    return place.has_parent_path() ? place.parent_path() : fs::path(".");
}

// The descriptor of a new file or folder, or -1.
int make(const fs::path& path, Partial::Kind kind) {
    if (kind == Partial::Kind::file)
        return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (::mkdir(path.c_str(), 0777) != 0) return -1;
    return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// False if another program took it for abandoned before it was locked.
bool claim(int descriptor) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    struct stat info = {};
    return ::fstat(descriptor, &info) == 0 && info.st_nlink > 0;
}

void remove_if_abandoned(const fs::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return;
    struct stat info = {};
    std::error_code ignored;
    if (::fstat(descriptor, &info) == 0 && info.st_uid == ::geteuid() &&
        (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) &&
        ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        fs::remove_all(path, ignored);
    ::close(descriptor);
}

void remove_abandoned(const fs::path& place) {
    std::error_code error;
    const std::string name = place.filename().string();
    for (fs::directory_iterator entry(folder_of(place), error), end; !error && entry != end;
         entry.increment(error))
        if (is_partial_of(entry->path().filename().string(), name))
            remove_if_abandoned(entry->path());
}

// 0, or why the bytes may not be on the disk. Some file systems cannot say, and answer EINVAL.
int flush(int descriptor) {
    return ::fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
}

int flush(const fs::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) return errno;
    const int error = flush(descriptor);
    ::close(descriptor);
    return error;
}

}  // namespace

Partial::Partial(const fs::path& place, Kind kind) : place_(place), kind_(kind) {
    constexpr int kTries = 8;
    remove_abandoned(place);
    for (int tries = 0; tries < kTries; ++tries) {
        path_ = place.string() + kMark + random_digits();
        descriptor_ = make(path_, kind);
        if (descriptor_ < 0 && errno != EEXIST) fail(errno);
        if (descriptor_ >= 0 && claim(descriptor_)) return;
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    fail(EAGAIN);
}

Partial::~Partial() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
    ::close(descriptor_);
}

void Partial::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) fail(errno);
        if (written > 0) bytes.remove_prefix(size_t(written));
    }
}

void Partial::finish() {
    if (kind_ == Kind::folder)
        for (const auto& entry : fs::recursive_directory_iterator(path_))
            if (const int error = flush(entry.path())) fail(error);
    if (const int error = flush(descriptor_)) fail(error);
    if (::rename(path_.c_str(), place_.c_str()) != 0) fail(errno);
    path_.clear();
    flush(folder_of(place_));  // the name too, where the system can
}

void Partial::fail(int error) const {
    throw Error(place_.string() + ": cannot be written: " + std::generic_category().message(error));
}

}  // namespace aerie
