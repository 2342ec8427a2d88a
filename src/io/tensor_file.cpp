// Shapes as text and as checked byte counts; tensor data with its checksum.
#include "io/tensor_file.h"

#include <algorithm>

#include "core/error.h"
#include "io/crc32.h"

namespace aerie {
namespace {

constexpr size_t kMaxDims = 8;

// Continues a checksum over bytes of the file that nobody keeps.
uint32_t crc_of_range(const ByteSource& file, size_t begin, size_t end, uint32_t crc) {
    constexpr size_t kBlockBytes = 1 << 20;
    std::vector<std::byte> block(std::min(kBlockBytes, end - begin));
    while (begin < end) {
        const std::span part = std::span(block).first(std::min(block.size(), end - begin));
        file.read(begin, part);
        crc = crc32(crc, part);
        begin += part.size();
    }
    return crc;
}

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
    std::string text = "[";
    for (const int64_t dim : shape) {
        if (text.size() > 1) text += ", ";
        text += std::to_string(dim);
    }
    return text + "]";
}

void read_tensor(const ByteSource& file, const NamedTensor& tensor, std::span<std::byte> out,
                 const std::string& what) {
    file.read(tensor.data.begin, out);
    const auto& [all, expected] = tensor.checked;
    if (expected == 0) return;
    uint32_t crc = crc_of_range(file, all.begin, tensor.data.begin, 0);
    crc = crc_of_range(file, tensor.data.end(), all.end(), crc32(crc, out));
    if (crc != expected) throw Error(what + " is damaged: its checksum differs");
}

std::string read_checked(const ByteSource& file, const CheckedRange& part,
                         const std::string& what) {
    std::string text(part.range.size_bytes, '\0');
    const std::span bytes = std::as_writable_bytes(std::span(text));
    file.read(part.range.begin, bytes);
    if (part.crc != 0 && crc32(0, bytes) != part.crc)
        throw Error(what + " is damaged: its checksum differs");
    return text;
}

size_t checked_bytes(std::span<const int64_t> shape, DType dtype, const std::string& what) {
    if (shape.size() > kMaxDims) {
        throw Error(what + ": " + std::to_string(shape.size()) + " dimensions, expected at most " +
                    std::to_string(kMaxDims));
    }
    size_t bytes = size_bytes(dtype);
    bool empty = false;
    for (const int64_t dim : shape) {
        if (dim < 0) throw Error(what + ": negative dimension in shape " + shape_text(shape));
        empty = empty || dim == 0;
        // Zeros are left out, so that a shape is refused or not whatever the order of its
        // dimensions.
        if (dim != 0 && __builtin_mul_overflow(bytes, size_t(dim), &bytes)) {
            throw Error(what + ": shape " + shape_text(shape) + " overflows");
        }
    }
    return empty ? 0 : bytes;
}

}  // namespace aerie
