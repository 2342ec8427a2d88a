// Writes the header, padded to 8 bytes as the format's own writer does, then the data.
#include "io/safetensors_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "core/error.h"
#include "io/json.h"

namespace aerie {

namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = 64 << 20;

class OutputFile {
  public:
    explicit OutputFile(const fs::path& path)
        : path_(path), stream_(path, std::ios::binary | std::ios::trunc) {
        check();
    }
    void write(const void* data, size_t bytes) {
        stream_.write(static_cast<const char*>(data), std::streamsize(bytes));
        check();
    }
    void close() {
        stream_.close();
        check();
    }

  private:
    void check() const {
        if (!stream_)
            throw Error(path_.string() +
                        ": cannot be written: " + std::generic_category().message(errno));
    }

    fs::path path_;
    std::ofstream stream_;
};

size_t tensor_bytes(const NamedTensor& tensor) {
    return checked_bytes(tensor.shape, tensor.dtype, tensor.name);
}

std::string upper_name(DType type) {
    std::string text = name(type);
    for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

std::string header_of(std::span<const NamedTensor> tensors) {
    Json header(Json::Object{{"__metadata__", Json::Object{{"format", "pt"}}}});
    size_t offset = 0;
    for (const NamedTensor& tensor : tensors) {
        const size_t end = offset + tensor_bytes(tensor);
        header.set(tensor.name,
                   Json::Object{{"dtype", upper_name(tensor.dtype)},
                                {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())},
                                {"data_offsets", Json::Array{uint64_t(offset), uint64_t(end)}}});
        offset = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
}

void write_file(const fs::path& path, std::span<const NamedTensor> tensors,
                const TensorSource& source) {
    OutputFile file(path);
    const std::string header = header_of(tensors);
    uint8_t length[8];
    for (int i = 0; i < 8; ++i) length[i] = uint8_t(uint64_t(header.size()) >> (8 * i));
    file.write(length, sizeof(length));
    file.write(header.data(), header.size());
    std::vector<std::byte> block;
    for (const NamedTensor& tensor : tensors) {
        const size_t bytes = tensor_bytes(tensor);
        for (size_t offset = 0; offset < bytes; offset += kBlockBytes) {
            block.resize(std::min(kBlockBytes, bytes - offset));
            source(tensor, offset, block);
            file.write(block.data(), block.size());
        }
    }
    file.close();
}

// Where each shard begins among the tensors; one more entry than shards.
std::vector<size_t> shard_bounds(const std::vector<NamedTensor>& tensors, size_t shard_bytes) {
    std::vector<size_t> bounds = {0};
    size_t filled = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
        const size_t bytes = tensor_bytes(tensors[i]);
        if (filled > 0 && filled + bytes > shard_bytes) {
            bounds.push_back(i);
            filled = 0;
        }
        filled += bytes;
    }
    bounds.push_back(tensors.size());
    return bounds;
}

}  // namespace

size_t data_bytes(const std::vector<NamedTensor>& tensors) {
    size_t total = 0;
    for (const NamedTensor& tensor : tensors) total += tensor_bytes(tensor);
    return total;
}

void write_safetensors(const fs::path& folder, const std::vector<NamedTensor>& tensors,
                       size_t shard_bytes, const TensorSource& source) {
    const std::vector<size_t> bounds = shard_bounds(tensors, shard_bytes);
    const size_t shards = bounds.size() - 1;
    if (shards == 1) {
        write_file(folder / "model.safetensors", tensors, source);
        return;
    }
    Json::Object shard_of;
    for (size_t i = 0; i < shards; ++i) {
        char name[64];
        std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", i + 1, shards);
        const auto part = std::span(tensors).subspan(bounds[i], bounds[i + 1] - bounds[i]);
        write_file(folder / name, part, source);
        for (const NamedTensor& tensor : part) shard_of.emplace_back(tensor.name, name);
    }
    const Json index(
        Json::Object{{"metadata", Json::Object{{"total_size", uint64_t(data_bytes(tensors))}}},
                     {"weight_map", std::move(shard_of)}});
    write_text(folder / "model.safetensors.index.json", index.dump());
}

void write_text(const fs::path& file, const std::string& text) {
    OutputFile output(file);
    output.write(text.data(), text.size());
    output.close();
}

}  // namespace aerie
