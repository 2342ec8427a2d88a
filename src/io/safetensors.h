// The safetensors format: 8-byte header length, JSON header, one block of data.
#pragma once

#include "io/tensor_file.h"

namespace aerie {

// `file` names the source in errors. Refuses a header over 100 MB, more than 65,536 tensors, shapes
// that do not match their bytes, and data that overlaps, leaves gaps or ends early. Tensors of
// types that we do not know are refused. Only the header is read. Throws Error.
std::vector<NamedTensor> read_safetensors(const ByteSource& source, const std::string& file);

}  // namespace aerie
