// Safetensors files and their shards, written tensor by tensor: memory stays small at any size.
#pragma once

#include <filesystem>
#include <functional>

#include "io/tensor_file.h"

namespace aerie {

// Supplies bytes [offset, offset + out.size()) of a tensor; offsets are multiples of 64.
using TensorSource =
    std::function<void(const NamedTensor& tensor, size_t offset, std::span<std::byte> out)>;

// Writes folder/model.safetensors, or shards of at most shard_bytes (and at least one tensor) and
// model.safetensors.index.json. Only name, type and shape of `tensors` are used. Throws Error
// naming the file.
void write_safetensors(const std::filesystem::path& folder, const std::vector<NamedTensor>& tensors,
                       size_t shard_bytes, const TensorSource& source);

// Bytes that the data of the tensors takes.
size_t data_bytes(const std::vector<NamedTensor>& tensors);

// Writes a small file at once. Throws Error naming it.
void write_text(const std::filesystem::path& file, const std::string& text);

}  // namespace aerie
