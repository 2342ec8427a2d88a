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
    uint64_t end = 0;  // where its end record begins
};

// Where the entry's local header begins and its data ends.
struct Extent {
    uint64_t begin = 0, end = 0;
    const std::string* name = nullptr;
};

// Bytes of the file, named by their places in the file. Throws Error where there are none.
class Window {
  public:
    Window(const ByteSource& source, uint64_t begin, uint64_t count, const std::string& file)
        : begin_(begin), file_(file) {
        if (begin > source.size_bytes() || count > source.size_bytes() - begin) fail();
        text_.resize(count);
        source.read(begin, std::as_writable_bytes(std::span(text_)));
    }

    uint64_t begin() const { return begin_; }
    std::string_view text(uint64_t at, uint64_t count) const {
        const uint64_t first = at - begin_;  // huge if `at` lies before
        if (first > text_.size() || count > text_.size() - first) fail();
        return std::string_view(text_).substr(first, count);
    }
    uint64_t number(uint64_t at, size_t bytes) const {  // little-endian
        uint64_t value = 0;
        const std::string_view raw = text(at, bytes);
        for (size_t i = 0; i < bytes; ++i) value |= uint64_t(uint8_t(raw[i])) << (8 * i);
        return value;
    }
    bool starts(uint64_t at, std::string_view signature) const {
        return text(at, signature.size()) == signature;
    }
    [[noreturn]] void fail() const { throw Error(file_ + ": damaged zip file"); }

  private:
    uint64_t begin_;
    std::string text_;
    const std::string& file_;
};

class ZipReader {
  public:
    ZipReader(const ByteSource& source, const std::string& file) : source_(source), file_(file) {}

    std::vector<ZipEntry> run();

  private:
    [[noreturn]] void fail(const std::string& why) const { throw Error(file_ + ": " + why); }
    Window window(uint64_t begin, uint64_t count) const { return {source_, begin, count, file_}; }

    Directory find_directory() const;
    Directory find_zip64_directory(uint64_t locator) const;
    ZipEntry read_entry(const Window& headers, uint64_t at);
    // Where the data of an entry begins, whose local header is at `begin`.
    uint64_t find_data(const std::string& name, uint64_t begin, uint64_t limit) const;
    void check_overlaps();

    const ByteSource& source_;
    const std::string& file_;
    std::vector<Extent> extents_;
};

// The end record, whose comment must reach exactly to the end of the file.
uint64_t find_end(const Window& tail, uint64_t last) {
    for (uint64_t at = last;; --at) {
        if (tail.starts(at, kEnd) && tail.number(at + 20, 2) == last - at) return at;
        if (at == tail.begin()) tail.fail();
    }
}

Directory ZipReader::find_zip64_directory(uint64_t locator) const {
    const uint64_t at = window(locator + 8, 8).number(locator + 8, 8);
    const Window end = window(at, kZip64EndBytes);
    constexpr uint64_t kUncounted = 12;  // the record's own size leaves out its first bytes
    if (!end.starts(at, kZip64End) || at > locator ||
        end.number(at + 4, 8) != locator - at - kUncounted)
        end.fail();
    return {end.number(at + 48, 8), end.number(at + 40, 8), end.number(at + 32, 8), at};
}

Directory ZipReader::find_directory() const {
    constexpr uint64_t kMaxCommentBytes = 0xFFFF;
    constexpr size_t kMaxDirectoryBytes = 16 << 20;
    if (source_.size_bytes() < kEndBytes) fail("damaged zip file");
    const uint64_t last = source_.size_bytes() - kEndBytes;
    const uint64_t most = std::min(last, kMaxCommentBytes + kZip64LocatorBytes);
    const Window tail = window(last - most, most + kEndBytes);
    const uint64_t end = find_end(tail, last);
    Directory directory{tail.number(end + 16, 4), tail.number(end + 12, 4),
                        tail.number(end + 10, 2), end};
    if (end - tail.begin() >= kZip64LocatorBytes &&
        tail.starts(end - kZip64LocatorBytes, kZip64Locator))
        directory = find_zip64_directory(end - kZip64LocatorBytes);
    // Places count from the zip's first byte: if another file stands before it, the directory does
    // not end where its end record begins.
    if (directory.begin > directory.end || directory.size_bytes != directory.end - directory.begin)
        tail.fail();
    if (directory.entries > kMaxEntries) {
        fail("zip file of more than " + std::to_string(kMaxEntries) + " entries");
    }
    if (directory.size_bytes > kMaxDirectoryBytes) {
        fail("zip directory of " + std::to_string(directory.size_bytes) +
             " bytes, expected at most " + std::to_string(kMaxDirectoryBytes));
    }
    return directory;
}

// Replaces those of `fields`, in this order, that are saturated; [at, end) are extra fields.
void read_zip64(const Window& headers, uint64_t at, uint64_t end,
                std::span<uint64_t* const> fields) {
    constexpr size_t kHeaderBytes = 4;
    constexpr uint16_t kZip64 = 1;
    headers.text(at, end - at);
    while (end - at >= kHeaderBytes) {
        const uint64_t id = headers.number(at, 2);
        const uint64_t field_end = at + kHeaderBytes + headers.number(at + 2, 2);
        if (field_end > end) headers.fail();
        at += kHeaderBytes;
        for (size_t i = 0; id == kZip64 && i < fields.size(); ++i) {
            if (*fields[i] != kSaturated) continue;
            if (field_end - at < 8) headers.fail();
            *fields[i] = headers.number(at, 8);
            at += 8;
        }
        at = field_end;
    }
}

uint64_t ZipReader::find_data(const std::string& name, uint64_t begin, uint64_t limit) const {
    const uint64_t header_bytes = kLocalHeaderBytes + name.size();
    if (begin <= limit && header_bytes <= limit - begin) {
        const Window header = window(begin, header_bytes);
        if (header.starts(begin, kLocalHeader) && header.number(begin + 26, 2) == name.size() &&
            header.text(begin + kLocalHeaderBytes, name.size()) == name)
            return begin + header_bytes + header.number(begin + 28, 2);
    }
    fail("zip entry " + in_quotes(name) + " is not where the directory says");
}

// The entry whose directory header is at `at`.
ZipEntry ZipReader::read_entry(const Window& headers, uint64_t at) {
    if (!headers.starts(at, kDirectoryHeader)) headers.fail();
    const uint64_t flags = headers.number(at + 8, 2), method = headers.number(at + 10, 2);
    const uint32_t crc = uint32_t(headers.number(at + 16, 4));
    uint64_t stored_bytes = headers.number(at + 20, 4), plain_bytes = headers.number(at + 24, 4);
    uint64_t begin = headers.number(at + 42, 4);
    const uint64_t name_bytes = headers.number(at + 28, 2);
    const uint64_t extra = at + kDirectoryHeaderBytes + name_bytes;
    if (name_bytes > kMaxNameBytes) fail("zip entry with an overlong name");
    const std::string name(headers.text(at + kDirectoryHeaderBytes, name_bytes));
    read_zip64(headers, extra, extra + headers.number(at + 30, 2),
               std::array{&plain_bytes, &stored_bytes, &begin});

    const std::string what = "zip entry " + in_quotes(name);
    constexpr uint64_t kEncrypted = 1;
    if (method != 0 || (flags & kEncrypted) || stored_bytes != plain_bytes) {
        fail(what + " is compressed or encrypted, expected a plain one");
    }
    const uint64_t limit = headers.begin();  // data lies before the directory
    const uint64_t data = find_data(name, begin, limit);
    if (data > limit || plain_bytes > limit - data) {
        fail(what + " ends after the data of the file");
    }
    extents_.push_back({begin, data + plain_bytes, nullptr});
    return {name, {{data, plain_bytes}, crc}};
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
    const Window headers = window(directory.begin, directory.size_bytes);
    std::vector<ZipEntry> entries;
    entries.reserve(directory.entries);  // the names must not move: the extents point to them
    std::unordered_set<std::string_view> names;
    uint64_t at = directory.begin;
    for (uint64_t i = 0; i < directory.entries; ++i) {
        entries.push_back(read_entry(headers, at));
        const std::string& name = entries.back().name;
        if (!names.insert(name).second) fail("zip entry " + in_quotes(name) + " is there twice");
        extents_.back().name = &name;
        at += kDirectoryHeaderBytes + headers.number(at + 28, 2) + headers.number(at + 30, 2) +
              headers.number(at + 32, 2);
    }
    if (at != directory.end) headers.fail();
    check_overlaps();
    return entries;
}

}  // namespace

std::vector<ZipEntry> read_zip(const ByteSource& source, const std::string& file) {
    return ZipReader(source, file).run();
}

}  // namespace aerie
