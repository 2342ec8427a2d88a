// Writes the header, then the data of each tensor, padded.
#include "io/gguf/writer.h"

#include <algorithm>

#include "core/parallel_for.h"
#include "io/gguf/bytes.h"

namespace aerie {
namespace {

constexpr size_t kAlignment = 32;  // the default without general.alignment

size_t aligned(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::string header_of(const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors) {
    constexpr uint32_t kVersion = 3;
    std::string header = "GGUF";
    append_number(header, kVersion, 4);
    append_number(header, tensors.size(), 8);
    append_number(header, metadata.values().size(), 8);
    for (const auto& [key, value] : metadata.values()) {
        append_text(header, key);
        value.write(header);
    }
    size_t offset = 0;
    for (const GgufTensor& tensor : tensors) {
        append_text(header, tensor.name);
        append_number(header, tensor.shape.size(), 4);
        for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim)
            append_number(header, uint64_t(*dim), 8);
        append_number(header, uint64_t(tensor.type), 4);
        append_number(header, offset, 8);
        offset += aligned(gguf_bytes(tensor));
    }
    header.resize(aligned(header.size()), '\0');
    return header;
}

// Writes 16 MB at a time, which all cores make.
void write_tensor(PendingFile& file, size_t index, const GgufTensor& tensor, const GgufRows& rows) {
    constexpr size_t kChunkBytes = size_t(16) << 20;
    const size_t row_bytes = gguf_bytes(tensor) / size_t(tensor.rows());
    const int64_t step =
        std::max<int64_t>(int64_t(kChunkBytes / row_bytes) / rows.together, 1) * rows.together;
    std::string chunk;
    for (int64_t first = 0; first < tensor.rows(); first += step) {
        const int64_t count = std::min(step, tensor.rows() - first);
        chunk.resize(size_t(count) * row_bytes);
        const std::span out = std::as_writable_bytes(std::span(chunk));
        parallel_for(count, rows.together, [&](int64_t begin, int64_t end) {
            rows.read(index, first + begin, end - begin,
                      out.subspan(size_t(begin) * row_bytes, size_t(end - begin) * row_bytes));
        });
        file.write(chunk);
        if (rows.on_written) rows.on_written(chunk.size());
    }
    const size_t bytes = gguf_bytes(tensor);
    file.write(std::string(aligned(bytes) - bytes, '\0'));
}

}  // namespace

size_t gguf_bytes(const GgufTensor& tensor) {
    return checked_bytes(size_t(tensor.rows() * tensor.row_elements()), tensor.type, tensor.name);
}

void write_gguf(PendingFile& file, const GgufMetadata& metadata,
                const std::vector<GgufTensor>& tensors, const GgufRows& rows) {
    file.write(header_of(metadata, tensors));
    for (size_t i = 0; i < tensors.size(); ++i) write_tensor(file, i, tensors[i], rows);
}

}  // namespace aerie
