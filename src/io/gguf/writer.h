// A model as one GGUF file, written tensor by tensor: memory stays small at any size.
#pragma once

#include <functional>

#include "core/pending_file.h"
#include "io/gguf/file.h"

namespace aerie {

// Supplies rows [first, first + count) of tensors[index] in the type of the file. Several threads
// call it at once, with ranges that begin at multiples of `together`.
struct GgufRows {
    std::function<void(size_t index, int64_t first, int64_t count, std::span<std::byte> out)> read;
    int64_t together = 1;
    std::function<void(size_t bytes)> on_written;  // on the caller's thread; may be empty
};

// Bytes of the data of a tensor of this type and shape. Throws Error naming it.
size_t gguf_bytes(const GgufTensor& tensor);

// Writes version 3. Only name, type and shape of the tensors are used. Throws Error.
void write_gguf(PendingFile& file, const GgufMetadata& metadata,
                const std::vector<GgufTensor>& tensors, const GgufRows& rows);

}  // namespace aerie
