// The zip + pickle format of torch.save, read by a restricted reader that executes nothing: it
// knows the opcodes that a dict of tensors needs and eight names, and builds plain tensors only.
#pragma once

#include "io/tensor_file.h"

namespace aerie {

// A dict (or OrderedDict) from names to tensors or parameters of stored (uncompressed) F32, F16,
// BF16, I64 or Bool storages; other values in the dict are refused. Throws Error naming `file`.
std::vector<NamedTensor> read_torch_bin(std::span<const std::byte> bytes, const std::string& file);

// The pickle alone. Storage keys are resolved by `storages` (name in the zip -> bytes).
struct TorchStorage {
    std::string key;
    std::span<const std::byte> data;
};
std::vector<NamedTensor> read_torch_pickle(std::span<const std::byte> pickle,
                                           std::span<const TorchStorage> storages,
                                           const std::string& file);

}  // namespace aerie
