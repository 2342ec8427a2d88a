// Zip directories (APPNOTE.TXT 4.3), read from the end as they must be. Debian's minizip cannot
// read zip64 entries on 64-bit systems, and checkpoints over 4 GB have them.
#include "io/zip.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

constexpr size_t kMaxEntries = 65'600;
constexpr size_t kMaxNameBytes = 512;
constexpr uint64_t kSaturated = 0xFFFFFFFF;  // a 32-bit field whose value is in the zip64 field

constexpr std::string_view kLocalHeader = "PK\x03\x04";
constexpr std::string_view kDirectoryHeader = "PK\x01\x02";
constexpr std::string_view kEnd = "PK\x05\x06";
constexpr std::string_view kZip64End = "PK\x06\x06";
constexpr std::string_view kZip64Locator = "PK\x06\x07";

constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kDirectoryHeaderBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kZip64EndBytes = 56;
constexpr size_t kZip64LocatorBytes = 20;

struct Directory {
    uint64_t begin = 0, size_bytes = 0, entries = 0;
};

// Where the entry's local header begins and its data ends.
struct Extent {
    uint64_t begin = 0, end = 0;
    const std::string* name = nullptr;
};

class ZipReader {
  public:
    ZipReader(std::span<const std::byte> bytes, const std::string& file)
        : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), file_(file) {}

    std::vector<ZipEntry> run();

  private:
    [[noreturn]] void fail(const std::string& why) const { throw Error(file_ + ": " + why); }
    [[noreturn]] void fail_damaged() const { fail("damaged zip file"); }

    // `count` bytes from `at`, which must be in the file.
    std::string_view text(uint64_t at, uint64_t count) const;
    uint64_t number(uint64_t at, size_t bytes) const;  // little-endian
    bool starts(uint64_t at, std::string_view signature) const;

    size_t find_end() const;
    Directory find_directory() const;
    ZipEntry read_entry(uint64_t at, const Directory& directory);
    void read_zip64(std::string_view extra, std::span<uint64_t* const> fields) const;
    void check_overlaps();

    std::string_view text_;
    const std::string& file_;
    std::vector<Extent> extents_;
};

std::string_view ZipReader::text(uint64_t at, uint64_t count) const {
    if (at > text_.size() || count > text_.size() - at) fail_damaged();
    return text_.substr(at, count);
}

uint64_t ZipReader::number(uint64_t at, size_t bytes) const {
    uint64_t value = 0;
    const std::string_view raw = text(at, bytes);
    for (size_t i = 0; i < bytes; ++i) value |= uint64_t(uint8_t(raw[i])) << (8 * i);
    return value;
}

bool ZipReader::starts(uint64_t at, std::string_view signature) const {
    return text(at, signature.size()) == signature;
}

// The end record, whose comment must reach exactly to the end of the file.
size_t ZipReader::find_end() const {
    constexpr size_t kMaxCommentBytes = 0xFFFF;
    if (text_.size() < kEndBytes) fail_damaged();
    const size_t last = text_.size() - kEndBytes;
    const size_t most = std::min(last, kMaxCommentBytes);
    for (size_t comment = 0; comment <= most; ++comment) {
        const size_t at = last - comment;
        if (starts(at, kEnd) && number(at + 20, 2) == comment) return at;
    }
    fail_damaged();
}

Directory ZipReader::find_directory() const {
    const size_t end = find_end();
    Directory directory{number(end + 16, 4), number(end + 12, 4), number(end + 10, 2)};
    uint64_t limit = end;
    if (end >= kZip64LocatorBytes && starts(end - kZip64LocatorBytes, kZip64Locator)) {
        limit = number(end - kZip64LocatorBytes + 8, 8);
        if (limit > end || !starts(limit, kZip64End)) fail_damaged();
        text(limit, kZip64EndBytes);
        directory = {number(limit + 48, 8), number(limit + 40, 8), number(limit + 32, 8)};
    }
    if (directory.begin > limit || directory.size_bytes > limit - directory.begin) fail_damaged();
    if (directory.entries > kMaxEntries) {
        fail("zip file of more than " + std::to_string(kMaxEntries) + " entries");
    }
    return directory;
}

// Replaces those of `fields`, in this order, that are saturated.
void ZipReader::read_zip64(std::string_view extra, std::span<uint64_t* const> fields) const {
    constexpr size_t kHeaderBytes = 4;
    constexpr uint16_t kZip64 = 1;
    uint64_t at = uint64_t(extra.data() - text_.data());
    const uint64_t end = at + extra.size();
    while (end - at >= kHeaderBytes) {
        const uint64_t id = number(at, 2);
        const uint64_t field_end = at + kHeaderBytes + number(at + 2, 2);
        if (field_end > end) fail_damaged();
        at += kHeaderBytes;
        for (size_t i = 0; id == kZip64 && i < fields.size(); ++i) {
            if (*fields[i] != kSaturated) continue;
            if (field_end - at < 8) fail_damaged();
            *fields[i] = number(at, 8);
            at += 8;
        }
        at = field_end;
    }
}

// The entry whose directory header is at `at`.
ZipEntry ZipReader::read_entry(uint64_t at, const Directory& directory) {
    if (!starts(at, kDirectoryHeader)) fail_damaged();
    const uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
    uint64_t stored_bytes = number(at + 20, 4), plain_bytes = number(at + 24, 4);
    uint64_t begin = number(at + 42, 4);
    const uint64_t name_bytes = number(at + 28, 2), extra_bytes = number(at + 30, 2);
    if (name_bytes > kMaxNameBytes) fail("zip entry with an overlong name");
    ZipEntry entry{std::string(text(at + kDirectoryHeaderBytes, name_bytes)), {}};
    read_zip64(text(at + kDirectoryHeaderBytes + name_bytes, extra_bytes),
               std::array{&plain_bytes, &stored_bytes, &begin});

    const std::string what = "zip entry " + in_quotes(entry.name);
    constexpr uint64_t kEncrypted = 1;
    if (method != 0 || (flags & kEncrypted) || stored_bytes != plain_bytes) {
        fail(what + " is compressed or encrypted, expected a plain one");
    }
    if (begin > directory.begin || !starts(begin, kLocalHeader) ||
        number(begin + 26, 2) != name_bytes ||
        text(begin + kLocalHeaderBytes, name_bytes) != entry.name) {
        fail(what + " is not where the directory says");
    }
    const uint64_t data = begin + kLocalHeaderBytes + name_bytes + number(begin + 28, 2);
    if (data > directory.begin || plain_bytes > directory.begin - data) {
        fail(what + " ends after the data of the file");
    }
    entry.data = std::as_bytes(std::span(text(data, plain_bytes)));
    extents_.push_back({begin, data + plain_bytes, nullptr});
    return entry;
}

void ZipReader::check_overlaps() {
    std::sort(extents_.begin(), extents_.end(),
              [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < extents_.size(); ++i) {
        if (extents_[i].begin < extents_[i - 1].end) {
            fail("zip entries " + in_quotes(*extents_[i - 1].name) + " and " +
                 in_quotes(*extents_[i].name) + " overlap");
        }
    }
}

std::vector<ZipEntry> ZipReader::run() {
    const Directory directory = find_directory();
    std::vector<ZipEntry> entries;
    entries.reserve(directory.entries);  // the names must not move: the extents point to them
    std::unordered_set<std::string_view> names;
    uint64_t at = directory.begin;
    for (uint64_t i = 0; i < directory.entries; ++i) {
        entries.push_back(read_entry(at, directory));
        const std::string& name = entries.back().name;
        if (!names.insert(name).second) fail("zip entry " + in_quotes(name) + " is there twice");
        extents_.back().name = &name;
        at += kDirectoryHeaderBytes + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
    }
    if (at != directory.begin + directory.size_bytes) fail_damaged();
    check_overlaps();
    return entries;
}

}  // namespace

std::vector<ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& file) {
    return ZipReader(bytes, file).run();
}

}  // namespace aerie
