// The zip + pickle format of torch.save, read by a restricted reader that executes nothing: it
// knows the opcodes that a dict of tensors needs and eight names, and builds plain tensors only.
#pragma once

#include <string_view>

#include "io/tensor_file.h"

namespace aerie {

// Reads a dict (or OrderedDict) from names to tensors or parameters of stored (uncompressed) F32,
// F16, BF16, I64 or Bool storages; other values in the dict are refused. Throws Error naming
// `file`. Only the zip's own records and the pickle are read.
std::vector<NamedTensor> read_torch_bin(const ByteSource& source, const std::string& file);

// Reads the pickle alone. `storages` resolves storage keys (names in the zip) to places in the
// file.
struct TorchStorage {
    std::string key;
    CheckedRange data;
};
std::vector<NamedTensor> read_torch_pickle(std::string_view pickle,
                                           std::span<const TorchStorage> storages,
                                           const std::string& file);

}  // namespace aerie
