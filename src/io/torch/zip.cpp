// Zip directories (APPNOTE.TXT 4.3), read from the end as they must be. Debian's minizip cannot
// read zip64 entries on 64-bit systems, and checkpoints over 4 GB have them.
#include "io/torch/zip.h"

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
constexpr uint64_t kSaturated = 0xFFFFFFFF;  // the value of a 32-bit field is in the zip64 field

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

constexpr uint64_t kEncrypted = 1, kHasDescriptor = 8;  // flags
constexpr std::string_view kDescriptor = "PK\x07\x08";

struct Directory {
    uint64_t begin = 0, size_bytes = 0, entries = 0;
    uint64_t end = 0;  // where its end record begins
};

// Fields that an entry has both in the directory and in its local header.
struct Said {
    uint64_t flags = 0, method = 0, crc = 0, stored_bytes = 0, plain_bytes = 0;
};

// Where the entry's local header begins and its data ends.
struct Extent {
    uint64_t begin = 0, end = 0;
    const std::string* name = nullptr;
};

// Bytes of the file in memory, addressed by file offset. An access outside of them throws Error.
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
    // Offset of the data of the entry with its local header at `begin`. A local header that differs
    // from the directory is refused, because other readers go by it.
    uint64_t find_data(const std::string& name, const Said& said, uint64_t begin,
                       uint64_t limit) const;
    void check_descriptor(const std::string& name, const Said& said, uint64_t at,
                          uint64_t limit) const;
    void check_overlaps();

    const ByteSource& source_;
    const std::string& file_;
    std::vector<Extent> extents_;
};

// The end record. Its comment must reach exactly to the end of the file.
uint64_t find_end(const Window& tail, uint64_t last) {
    for (uint64_t at = last;; --at) {
        if (tail.starts(at, kEnd) && tail.number(at + 20, 2) == last - at) return at;
        if (at == tail.begin()) tail.fail();
    }
}

Directory ZipReader::find_zip64_directory(uint64_t locator) const {
    const uint64_t at = window(locator + 8, 8).number(locator + 8, 8);
    const Window end = window(at, kZip64EndBytes);
    constexpr uint64_t kUncounted = 12;  // the record's size does not count its first bytes
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

// Replaces the saturated ones of `fields`, in this order, by the zip64 field among the extra fields
// [at, end).
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

// Whether the local header at `begin` agrees with the directory. Its extra fields follow the name
// and end at `end`.
bool says_the_same(const Window& header, uint64_t begin, uint64_t name_bytes, uint64_t end,
                   const Said& said) {
    Said own{header.number(begin + 6, 2), header.number(begin + 8, 2), header.number(begin + 14, 4),
             header.number(begin + 18, 4), header.number(begin + 22, 4)};
    read_zip64(header, begin + kLocalHeaderBytes + name_bytes, end,
               std::array{&own.plain_bytes, &own.stored_bytes});
    if (own.flags != said.flags || own.method != said.method) return false;
    // With this flag the writer did not know the values yet and wrote zeros; they follow the data.
    const auto is = [&](uint64_t there, uint64_t wanted) {
        return there == wanted || (there == 0 && (said.flags & kHasDescriptor));
    };
    return is(own.crc, said.crc) && is(own.stored_bytes, said.stored_bytes) &&
           is(own.plain_bytes, said.plain_bytes);
}

uint64_t ZipReader::find_data(const std::string& name, const Said& said, uint64_t begin,
                              uint64_t limit) const {
    const uint64_t header_bytes = kLocalHeaderBytes + name.size();
    const auto fits = [&](uint64_t bytes) { return begin <= limit && bytes <= limit - begin; };
    if (!fits(header_bytes))
        fail("zip entry " + in_quotes(name) + " is not where the directory says");
    const Window header = window(begin, header_bytes);
    if (!header.starts(begin, kLocalHeader) || header.number(begin + 26, 2) != name.size() ||
        header.text(begin + kLocalHeaderBytes, name.size()) != name)
        fail("zip entry " + in_quotes(name) + " is not where the directory says");
    const uint64_t whole_bytes = header_bytes + header.number(begin + 28, 2);
    if (!fits(whole_bytes))
        fail("zip entry " + in_quotes(name) + " ends after the data of the file");
    if (!says_the_same(window(begin, whole_bytes), begin, name.size(), begin + whole_bytes, said))
        fail("zip entry " + in_quotes(name) +
             " is another one by its own header than by the directory: expected the same flags, "
             "method, sizes and checksum");
    return begin + whole_bytes;
}

// Checks the data descriptor of an entry that has one: its checksum and sizes again, of 4 or, with
// zip64, 8 bytes. Writers may leave out the signature; then the descriptor cannot be recognised and
// is not checked.
void ZipReader::check_descriptor(const std::string& name, const Said& said, uint64_t at,
                                 uint64_t limit) const {
    constexpr uint64_t kShort = 16, kLong = 24;
    if (!(said.flags & kHasDescriptor) || limit - at < kShort) return;
    const Window descriptor = window(at, std::min(kLong, limit - at));
    if (!descriptor.starts(at, kDescriptor)) return;
    const auto has_sizes = [&](size_t bytes) {
        return limit - at >= 8 + 2 * bytes &&
               descriptor.number(at + 8, bytes) == said.stored_bytes &&
               descriptor.number(at + 8 + bytes, bytes) == said.plain_bytes;
    };
    if (descriptor.number(at + 4, 4) != said.crc || (!has_sizes(4) && !has_sizes(8)))
        fail("zip entry " + in_quotes(name) +
             " is another one by what stands behind its data than by the directory");
}

// Reads the entry that has its directory header at `at`.
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
    if (method != 0 || (flags & kEncrypted) || stored_bytes != plain_bytes) {
        fail(what + " is compressed or encrypted, expected a plain one");
    }
    const uint64_t limit = headers.begin();  // data lies before the directory
    const Said said{flags, method, crc, stored_bytes, plain_bytes};
    const uint64_t data = find_data(name, said, begin, limit);
    if (data > limit || plain_bytes > limit - data) {
        fail(what + " ends after the data of the file");
    }
    check_descriptor(name, said, data + plain_bytes, limit);
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
