// A window of 64 KB moves over the file; longer reads bypass it.
#include "io/gguf/cursor.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace aerie {
namespace {

constexpr size_t kWindowBytes = 64 << 10;
constexpr size_t kMaxKept = 100'000'000;  // a string that grows takes twice as much for a moment

}  // namespace

void GgufCursor::refill() {
    window_.resize(std::min(kWindowBytes, left()));
    source_.read(at_, window_);
    window_at_ = at_;
}

void GgufCursor::take(std::span<std::byte> out, const std::string& what) {
    if (out.size() > left()) fail_short(what);
    while (!out.empty()) {
        const size_t seen = at_ - window_at_;
        size_t count = std::min(out.size(), window_.size() - seen);
        if (count > 0) {
            std::memcpy(out.data(), window_.data() + seen, count);
        } else if (out.size() >= kWindowBytes) {
            count = out.size();
            source_.read(at_, out);
            window_.clear();
            window_at_ = at_ + count;
        } else {
            refill();
        }
        at_ += count;
        out = out.subspan(count);
    }
}

uint64_t GgufCursor::integer(size_t bytes, const std::string& what) {
    uint8_t raw[sizeof(uint64_t)] = {};
    take(std::as_writable_bytes(std::span(raw)).first(bytes), what);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= uint64_t(raw[i]) << (8 * i);
    return value;
}

size_t GgufCursor::append_string(std::string& out, size_t most, const std::string& what) {
    const uint64_t length = integer(sizeof(uint64_t), what);
    if (length > most) {
        fail(what + " has " + std::to_string(length) + " bytes, expected at most " +
             std::to_string(most));
    }
    if (length > left()) fail_short(what);
    keep(size_t(length));
    const size_t begin = out.size();
    out.resize(begin + size_t(length));
    take(std::as_writable_bytes(std::span(out).subspan(begin)), what);
    return size_t(length);
}

void GgufCursor::keep(size_t bytes) {
    if (bytes > kMaxKept - kept_)
        fail("header of more than " + std::to_string(kMaxKept) + " bytes");
    kept_ += bytes;
}

void GgufCursor::fail_short(const std::string& what) const {
    fail("ends at byte " + std::to_string(source_.size_bytes()) + ", in " + what +
         "; the file is cut short or damaged: download it again");
}

void GgufCursor::fail(const std::string& why) const {
    throw Error(file_ + ": " + why);
}

}  // namespace aerie
