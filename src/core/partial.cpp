// Claimed while its maker lives, so that others can tell which ones are abandoned.
#include "core/partial.h"

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
    std::error_code error;
    const std::string name = place.filename().string();
    for (fs::directory_iterator entry(folder_of(place), error), end; !error && entry != end;
         entry.increment(error))
        if (is_partial_of(entry->path().filename().string(), name))
            platform::remove_abandoned(entry->path());
}

}  // namespace

Partial::Partial(const fs::path& place, Kind kind) : place_(place), kind_(kind) {
    constexpr int kTries = 8;
    remove_abandoned_beside(place);
    for (int tries = 0; tries < kTries; ++tries) {
        path_ = place;
        path_ += kMark + random_digits();
        const int error = platform::make_claimed(path_, kind == Kind::folder, handle_);
        if (error == 0) return;
        if (error != EEXIST && error != EAGAIN) fail(error);
    }
    fail(EAGAIN);
}

Partial::~Partial() {
    handle_.close();
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
}

void Partial::write(std::string_view bytes) {
    if (const int error = platform::write_all(handle_, std::as_bytes(std::span(bytes))))
        fail(error);
}

void Partial::finish() {
    if (kind_ == Kind::folder)
        for (const auto& entry : fs::recursive_directory_iterator(path_))
            if (const int error = platform::flush(entry.path())) fail(error);
    if (const int error = platform::flush(handle_)) fail(error);
    if (const int error = platform::rename_claimed(handle_, path_, place_)) fail(error);
    path_.clear();
    platform::flush(folder_of(place_));  // the name too, where the system can
}

void Partial::fail(int error) const {
    throw Error(place_.string() + ": cannot be written: " + std::generic_category().message(error));
}

}  // namespace aerie
