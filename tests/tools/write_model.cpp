// Writers of whole models in the formats and types that are read.
#include "tools/write_model.h"
#include "paths.h"

#include <cstring>
#include <fstream>

#include "io/write_files.h"

namespace aerie::test {

namespace fs = std::filesystem;

namespace {

float value_at(const Stored& tensor, size_t i) {
    float value = 0;
    uint16_t half = 0;
    if (tensor.dtype == DType::F32)
        std::memcpy(&value, tensor.data.data() + 4 * i, 4);
    else
        std::memcpy(&half, tensor.data.data() + 2 * i, 2);
    if (tensor.dtype == DType::F16) return f16_to_f32(half);
    return tensor.dtype == DType::BF16 ? bf16_to_f32(half) : value;
}

}  // namespace

std::vector<Stored> Stored::all_of(const fs::path& folder) {
    std::vector<Stored> all;
    const Checkpoint checkpoint = Checkpoint::open(folder);
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        const auto data = checkpoint.read(tensor);
        all.push_back(
            {name, tensor.shape, tensor.dtype,
             std::string(reinterpret_cast<const char*>(data.get()), tensor.data.size_bytes)});
    }
    return all;
}

Stored Stored::as(DType type) const {
    Stored result{name, shape, type, {}};
    for (size_t i = 0; i < data.size() / size_bytes(dtype); ++i) {
        const float value = value_at(*this, i);
        const uint16_t half = type == DType::F16 ? f32_to_f16(value) : f32_to_bf16(value);
        const void* bytes = type == DType::F32 ? static_cast<const void*>(&value) : &half;
        result.data.append(static_cast<const char*>(bytes), size_bytes(type));
    }
    return result;
}

std::string safetensors_of(const std::vector<Stored>& tensors) {
    SafetensorsWriter writer;
    for (const Stored& tensor : tensors) {
        std::string type = aerie::name(tensor.dtype);
        for (char& c : type) c = char(std::toupper(c));
        writer.add(tensor.name, type, shape_text(tensor.shape), tensor.data);
    }
    return writer.file();
}

std::string torch_of(const std::vector<Stored>& tensors) {
    std::vector<TorchTensor> list;
    for (const Stored& tensor : tensors)
        list.push_back({.name = tensor.name,
                        .storage_class = tensor.dtype == DType::F32    ? "FloatStorage"
                                         : tensor.dtype == DType::BF16 ? "BFloat16Storage"
                                                                       : "HalfStorage",
                        .element_bytes = int(size_bytes(tensor.dtype)),
                        .shape = tensor.shape,
                        .data = tensor.data});
    return torch_file(list);
}

void write_shards(const fs::path& folder, const std::string& file,
                  const std::vector<Stored>& tensors,
                  std::string (*write)(const std::vector<Stored>&)) {
    std::vector<Stored> shards[2];
    Json map;
    for (size_t i = 0; i < tensors.size(); ++i) {
        shards[i % 2].push_back(tensors[i]);
        map.set(tensors[i].name, "shard" + std::to_string(i % 2) + "-" + file);
    }
    for (int i : {0, 1})
        write_file(folder / ("shard" + std::to_string(i) + "-" + file), write(shards[i]));
    const Json index(Json::Object{{"metadata", Json::Object{}}, {"weight_map", map}});
    write_file(folder / (file + ".index.json"), index.dump());
}

void write_file(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
}

fs::path copy_without_weights(const std::string& bundled, const fs::path& to) {
    fs::create_directories(to);
    for (const auto& entry : fs::directory_iterator(models_dir() / bundled))
        if (entry.file_size() < 1'000'000) fs::copy(entry.path(), to / entry.path().filename());
    return to;
}

}  // namespace aerie::test
