// Torch's zip: one folder with data.pkl, the storages in data/<key>, and a byte order.
#include "io/torch/torch_bin.h"

#include <string_view>

#include "core/error.h"
#include "core/utf8.h"
#include "io/torch/zip.h"

namespace aerie {
namespace {

constexpr size_t kMaxPickleBytes = 16 << 20;

std::string read_entry(const ByteSource& source, const ZipEntry& entry, const std::string& file) {
    const std::string what = file + ": zip entry " + in_quotes(entry.name);
    if (entry.data.range.size_bytes > kMaxPickleBytes) {
        throw Error(what + " has " + std::to_string(entry.data.range.size_bytes) +
                    " bytes, expected at most " + std::to_string(kMaxPickleBytes));
    }
    return read_checked(source, entry.data, what);
}

// The folder that contains data.pkl, with its slash.
std::string root_folder(const std::vector<ZipEntry>& entries, const std::string& file) {
    constexpr std::string_view kPickle = "data.pkl";
    std::string root;
    for (const ZipEntry& entry : entries) {
        if (!entry.name.ends_with("/data.pkl")) continue;
        if (!root.empty()) throw Error(file + ": more than one data.pkl in the zip");
        root = entry.name.substr(0, entry.name.size() - kPickle.size());
    }
    if (root.empty()) throw Error(file + ": no data.pkl in the zip");
    return root;
}

}  // namespace

std::vector<NamedTensor> read_torch_bin(const ByteSource& source, const std::string& file) {
    char start[4] = {};
    if (source.size_bytes() >= sizeof(start))
        source.read(0, std::as_writable_bytes(std::span(start)));
    if (std::string_view(start, sizeof(start)) != "PK\x03\x04")
        throw Error(file + ": not a zip file (torch formats older than 1.6 are not read)");
    const std::vector<ZipEntry> entries = read_zip(source, file);
    const std::string root = root_folder(entries, file);
    const std::string data = root + "data/";
    std::string pickle;
    std::vector<TorchStorage> storages;
    for (const ZipEntry& entry : entries) {
        if (entry.name == root + "data.pkl") {
            pickle = read_entry(source, entry, file);
        } else if (entry.name == root + "byteorder") {
            const std::string order = read_entry(source, entry, file);
            if (order != "little")
                throw Error(file + ": byte order " + in_quotes(order) + ", expected 'little'");
        } else if (entry.name.starts_with(data)) {
            storages.push_back({entry.name.substr(data.size()), entry.data});
        }
    }
    return read_torch_pickle(pickle, storages, file);
}

}  // namespace aerie
