// A file of compiled pipelines. The driver checks the header of its own data; the checksum protects
// what follows it.
#include "vulkan/pipeline_file.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/hash.h"
#include "core/replaced_file.h"

namespace aerie::vulkan {

namespace fs = std::filesystem;

namespace {

struct Header {
    char magic[8] = {'a', 'e', 'r', 'i', 'e', 'p', 'c', '1'};
    uint64_t bytes = 0, checksum = 0;
};

}  // namespace

std::string pipeline_file_path(const std::string& folder, const Traits& traits) {
    char name[40];
    std::snprintf(
        name, sizeof(name), "pipelines-%016llx",
        static_cast<unsigned long long>(fnv1a(traits.uuid + traits.name + traits.driver)));
    return (fs::path(folder) / name).string();
}

std::vector<char> read_pipeline_file(const std::string& path) {
    std::error_code error;
    const uintmax_t size = fs::file_size(path, error);
    Header header;
    const Header expected;
    if (error || size < sizeof(header) || size > (256u << 20)) return {};
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    if (!file || std::memcmp(header.magic, expected.magic, sizeof(header.magic)) ||
        header.bytes != size - sizeof(header))
        return {};
    std::string data(size_t(header.bytes), '\0');
    file.read(data.data(), std::streamsize(data.size()));
    if (!file || fnv1a(data) != header.checksum) return {};
    return {data.begin(), data.end()};
}

void write_pipeline_file(const std::string& path, const std::vector<char>& data) {
    Header header;
    header.bytes = data.size();
    header.checksum = fnv1a({data.data(), data.size()});
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes.append(data.data(), data.size());
    try {
        fs::create_directories(fs::path(path).parent_path());
        ReplacedFile(path).commit(bytes);
    } catch (const std::exception&) {
        // Then the next start compiles the pipelines again.
    }
}

}  // namespace aerie::vulkan
