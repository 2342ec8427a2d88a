// Torch's zip: one folder with data.pkl, the storages in data/<key>, and a byte order.
#include "io/torch_bin.h"

#include <string_view>

#include "core/error.h"
#include "core/utf8.h"
#include "io/zip.h"

namespace aerie {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What stands before "data.pkl", with its slash.
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

std::vector<NamedTensor> read_torch_bin(std::span<const std::byte> bytes, const std::string& file) {
    if (!text_of(bytes).starts_with("PK\x03\x04")) {
        throw Error(file + ": not a zip file (torch formats older than 1.6 are not read)");
    }
    const std::vector<ZipEntry> entries = read_zip(bytes, file);
    const std::string root = root_folder(entries, file);
    const std::string data = root + "data/";
    std::span<const std::byte> pickle;
    std::vector<TorchStorage> storages;
    for (const ZipEntry& entry : entries) {
        if (entry.name == root + "data.pkl") {
            pickle = entry.data;
        } else if (entry.name == root + "byteorder") {
            if (text_of(entry.data) != "little") {
                throw Error(file + ": byte order " + in_quotes(text_of(entry.data)) +
                            ", expected 'little'");
            }
        } else if (entry.name.starts_with(data)) {
            storages.push_back({entry.name.substr(data.size()), entry.data});
        }
    }
    return read_torch_pickle(pickle, storages, file);
}

}  // namespace aerie
