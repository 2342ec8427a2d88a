// Shapes as text and as checked byte counts; tensor data with its checksum.
#include "io/tensor_file.h"

#include <algorithm>

#include "core/error.h"
#include "io/crc32.h"

namespace aerie {
namespace {

constexpr size_t kMaxDims = 8;

uint32_t crc_of(const ByteSource& file, const FileRange& range) {
    constexpr size_t kBlockBytes = 1 << 20;
    std::vector<std::byte> block(std::min(kBlockBytes, range.size_bytes));
    uint32_t crc = 0;
    for (size_t at = range.begin; at < range.end(); at += block.size()) {
        block.resize(std::min(block.size(), range.end() - at));
        file.read(at, block);
        crc = crc32(crc, block);
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

void check_tensor(const ByteSource& file, const NamedTensor& tensor, const std::string& what) {
    const auto& [range, expected] = tensor.checked;
    if (expected != 0 && crc_of(file, range) != expected)
        throw Error(what + " is damaged: its checksum differs");
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
        // Zero dimensions are left out of the product, so that an overflow does not depend on the
        // order of the dimensions.
        if (dim != 0 && __builtin_mul_overflow(bytes, size_t(dim), &bytes)) {
            throw Error(what + ": shape " + shape_text(shape) + " overflows");
        }
    }
    return empty ? 0 : bytes;
}

}  // namespace aerie
