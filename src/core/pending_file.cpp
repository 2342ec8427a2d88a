// A partial file is claimed while its maker lives, so that others can recognise abandoned ones.
#include "core/pending_file.h"

#include <cerrno>
#include <cstdio>
#include <random>
#include <span>
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

void remove_abandoned_beside(const fs::path& place) {
    const fs::path folder = folder_of(place);
    const std::string name = place.filename().string();
    platform::each_entry(folder, [&](const fs::path& entry) {
        if (is_partial_of(entry.string(), name)) platform::remove_abandoned(folder / entry);
    });
}

// Flushes everything in a folder to the disk.
int flush_entries(const fs::path& folder) {
    int error = 0;
    const int unread = platform::each_entry(folder, [&](const fs::path& name) {
        const fs::path entry = folder / name;
        if (error == 0 && fs::is_directory(fs::symlink_status(entry))) error = flush_entries(entry);
        if (error == 0) error = platform::flush(entry);
    });
    return error ? error : unread;
}

}  // namespace

PendingFile::PendingFile(const fs::path& place, Kind kind, FileAccess access)
    : place_(place), kind_(kind), access_(access) {
    constexpr int kTries = 8;
    remove_abandoned_beside(place);
    // While a replacement is written, nobody may read it who cannot read the file that it replaces.
    std::error_code ignored;
    const bool is_private =
        access == FileAccess::owner ||
        (kind == Kind::file && fs::is_regular_file(fs::symlink_status(place, ignored)));
    for (int tries = 0; tries < kTries; ++tries) {
        path_ = place;
        path_ += kMark + random_digits();
        const int error = platform::make_claimed(path_, kind == Kind::folder, is_private, handle_);
        if (error == 0) return;
        if (error != EEXIST && error != EAGAIN) fail(error);
    }
    fail(EAGAIN);
}

PendingFile::~PendingFile() {
    handle_.close();
    if (!path_.empty()) platform::remove_tree(path_);
}

void PendingFile::write(std::string_view bytes) {
    if (const int error = platform::write_all(handle_, std::as_bytes(std::span(bytes))))
        fail(error);
}

void PendingFile::finish() {
    const fs::path folder = folder_of(place_);  // first, since it may run out of memory
    if (kind_ == Kind::folder)
        if (const int error = flush_entries(path_)) fail(error);
    if (kind_ == Kind::file)
        if (const int error = platform::take_access(handle_, place_, access_ == FileAccess::owner))
            fail(error);
    if (const int error = platform::flush(handle_)) fail(error);
    if (const int error = platform::rename_claimed(handle_, path_, place_)) fail(error);
    path_.clear();
    platform::flush(folder);  // the name, too, if the system can
}

void PendingFile::fail(int error) const {
    throw Error(place_.string() + ": cannot be written: " + std::generic_category().message(error),
                Cause::inaccessible);
}

}  // namespace aerie
