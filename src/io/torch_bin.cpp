// The zip around a torch checkpoint, through minizip over the mapped bytes; entries are used in
// place.
#include "io/torch_bin.h"

#include <minizip/unzip.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

constexpr size_t kMaxEntries = 65'536 + 64;  // one a tensor, and torch's own
constexpr size_t kMaxNameBytes = 512;

// What minizip sees as a file: a window on memory, never written.
struct MemoryFile {
    std::span<const std::byte> bytes;
    uint64_t position = 0;
};

MemoryFile& memory_file(voidpf stream) {
    return *static_cast<MemoryFile*>(stream);
}

uLong read_memory(voidpf, voidpf stream, void* buffer, uLong size) {
    MemoryFile& file = memory_file(stream);
    const size_t count = std::min<size_t>(size, file.bytes.size() - file.position);
    if (count != 0) std::memcpy(buffer, file.bytes.data() + file.position, count);
    file.position += count;
    return count;
}

long seek_memory(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
    MemoryFile& file = memory_file(stream);
    const uint64_t from = origin == ZLIB_FILEFUNC_SEEK_CUR   ? file.position
                          : origin == ZLIB_FILEFUNC_SEEK_END ? file.bytes.size()
                                                             : 0;
    if (offset > file.bytes.size() - from) return -1;
    file.position = from + offset;
    return 0;
}

zlib_filefunc64_def memory_functions(MemoryFile& file) {
    zlib_filefunc64_def functions = {};
    functions.zopen64_file = [](voidpf opaque, const void*, int) { return opaque; };
    functions.zread_file = read_memory;
    functions.zwrite_file = [](voidpf, voidpf, const void*, uLong) -> uLong { return 0; };
    functions.ztell64_file = [](voidpf, voidpf stream) -> ZPOS64_T {
        return memory_file(stream).position;
    };
    functions.zseek64_file = seek_memory;
    functions.zclose_file = [](voidpf, voidpf) { return 0; };
    functions.zerror_file = [](voidpf, voidpf) { return 0; };
    functions.opaque = &file;
    return functions;
}

struct CloseZip {
    void operator()(void* zip) const { unzClose(zip); }
};

struct Entry {
    std::string name;
    std::span<const std::byte> data;
};

// The entry that minizip stands at.
Entry current_entry(unzFile zip, std::span<const std::byte> bytes, const std::string& file) {
    unz_file_info64 info = {};
    char name[kMaxNameBytes + 1];
    if (unzGetCurrentFileInfo64(zip, &info, name, sizeof(name), nullptr, 0, nullptr, 0) != UNZ_OK) {
        throw Error(file + ": damaged zip directory");
    }
    if (info.size_filename > kMaxNameBytes) throw Error(file + ": zip entry with an overlong name");
    Entry entry{std::string(name, info.size_filename), {}};
    const std::string what = file + ": zip entry " + in_quotes(entry.name);
    constexpr uLong kEncrypted = 1;
    if (info.compression_method != 0 || (info.flag & kEncrypted)) {
        throw Error(what + " is compressed or encrypted, expected a plain one");
    }
    if (info.compressed_size != info.uncompressed_size) throw Error(what + " has two sizes");
    if (unzOpenCurrentFile(zip) != UNZ_OK) throw Error(what + " is damaged");
    const uint64_t begin = unzGetCurrentFileZStreamPos64(zip);
    unzCloseCurrentFile(zip);
    if (begin > bytes.size() || info.uncompressed_size > bytes.size() - begin) {
        throw Error(what + " ends after the file");
    }
    entry.data = bytes.subspan(begin, info.uncompressed_size);
    return entry;
}

void check_entries(const std::vector<Entry>& entries, const std::string& file) {
    std::set<std::string_view> names;
    std::vector<const Entry*> by_place;
    for (const Entry& entry : entries) {
        if (!names.insert(entry.name).second) {
            throw Error(file + ": zip entry " + in_quotes(entry.name) + " is there twice");
        }
        if (!entry.data.empty()) by_place.push_back(&entry);
    }
    std::sort(by_place.begin(), by_place.end(),
              [](const Entry* a, const Entry* b) { return a->data.data() < b->data.data(); });
    for (size_t i = 1; i < by_place.size(); ++i) {
        const std::span<const std::byte> before = by_place[i - 1]->data;
        if (by_place[i]->data.data() < before.data() + before.size()) {
            throw Error(file + ": zip entries " + in_quotes(by_place[i - 1]->name) + " and " +
                        in_quotes(by_place[i]->name) + " overlap");
        }
    }
}

std::vector<Entry> read_zip(std::span<const std::byte> bytes, const std::string& file) {
    MemoryFile memory{bytes};
    zlib_filefunc64_def functions = memory_functions(memory);
    const std::unique_ptr<void, CloseZip> zip(unzOpen2_64(file.c_str(), &functions));
    if (!zip) throw Error(file + ": damaged zip file");
    std::vector<Entry> entries;
    int status = unzGoToFirstFile(zip.get());
    for (; status == UNZ_OK; status = unzGoToNextFile(zip.get())) {
        if (entries.size() == kMaxEntries) throw Error(file + ": too many zip entries");
        entries.push_back(current_entry(zip.get(), bytes, file));
    }
    if (status != UNZ_END_OF_LIST_OF_FILE) throw Error(file + ": damaged zip directory");
    check_entries(entries, file);
    return entries;
}

// The one folder of the archive: what stands before "data.pkl", with its slash.
std::string root_folder(const std::vector<Entry>& entries, const std::string& file) {
    constexpr std::string_view kPickle = "/data.pkl";
    std::string root;
    for (const Entry& entry : entries) {
        if (!entry.name.ends_with(kPickle)) continue;
        if (!root.empty()) throw Error(file + ": more than one data.pkl in the zip");
        root = entry.name.substr(0, entry.name.size() - kPickle.size() + 1);
    }
    if (root.empty()) throw Error(file + ": no data.pkl in the zip");
    return root;
}

}  // namespace

std::vector<NamedTensor> read_torch_bin(std::span<const std::byte> bytes, const std::string& file) {
    constexpr std::string_view kZipStart = "PK\x03\x04";
    if (bytes.size() < kZipStart.size() ||
        std::memcmp(bytes.data(), kZipStart.data(), kZipStart.size()) != 0) {
        throw Error(file + ": not a zip file (torch formats older than 1.6 are not read)");
    }
    const std::vector<Entry> entries = read_zip(bytes, file);
    const std::string root = root_folder(entries, file);
    const std::string data = root + "data/";
    std::span<const std::byte> pickle;
    std::vector<TorchStorage> storages;
    for (const Entry& entry : entries) {
        if (entry.name == root + "data.pkl") {
            pickle = entry.data;
        } else if (entry.name == root + "byteorder") {
            const std::string_view order(reinterpret_cast<const char*>(entry.data.data()),
                                         entry.data.size());
            if (order != "little") {
                throw Error(file + ": byte order " + in_quotes(order) + ", expected 'little'");
            }
        } else if (entry.name.starts_with(data)) {
            storages.push_back({entry.name.substr(data.size()), entry.data});
        }
    }
    return read_torch_pickle(pickle, storages, file);
}

}  // namespace aerie
