// Writes the tensors of a model into other files and types.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "tools/generated.h"

namespace aerie::test {

// A copy of a tensor, which a test can change and store in any way.
struct Stored {
    std::string name;
    std::vector<int64_t> shape;
    DType dtype = DType::F16;
    std::string data;

    static std::vector<Stored> all_of(const std::filesystem::path& folder);
    Stored as(DType type) const;
};

// The bytes of whole files.
std::string safetensors_of(const std::vector<Stored>& tensors);
std::string torch_of(const std::vector<Stored>& tensors);

// Writes two shards and their index, as `file` ("model.safetensors" or "pytorch_model.bin") names
// them.
void write_shards(const std::filesystem::path& folder, const std::string& file,
                  const std::vector<Stored>& tensors,
                  std::string (*write)(const std::vector<Stored>&));

void write_file(const std::filesystem::path& file, const std::string& bytes);

// A copy of a bundled folder's small files, without weights.
std::filesystem::path copy_without_weights(const std::string& bundled,
                                           const std::filesystem::path& to);

}  // namespace aerie::test
