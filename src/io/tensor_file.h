// The result of reading any weight file: named tensors, and where in the file their data lies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "io/byte_source.h"

namespace aerie {

std::string shape_text(std::span<const int64_t> shape);  // "[4096, 256]"

// A range of bytes in a file.
struct FileRange {
    size_t begin = 0, size_bytes = 0;
    size_t end() const { return begin + size_bytes; }
};

// A range of bytes in a file and its CRC-32; 0 if the file does not say.
struct CheckedRange {
    FileRange range;
    uint32_t crc = 0;
};

struct NamedTensor {
    std::string name;
    DType dtype = DType::F32;
    std::vector<int64_t> shape;  // row-major, contiguous; at most 8 dimensions
    FileRange data;              // exactly as long as shape and dtype say; begins at any byte
    CheckedRange checked = {};   // a range around `data`, if the file has checksums
    std::optional<DType> file_type = {};  // the file's type, if Checkpoint::fit changed dtype

    std::string shape_text() const { return aerie::shape_text(shape); }
};

// Throws Error (naming `what`) if the tensor has a checksum and its bytes do not match it.
void check_tensor(const ByteSource& file, const NamedTensor& tensor, const std::string& what);

// Reads a small part of a file. Throws Error as check_tensor does.
std::string read_checked(const ByteSource& file, const CheckedRange& part, const std::string& what);

// Product of the dimensions times the element size. Throws Error (naming `what`) if a dimension is
// negative, there are more than 8, or the product overflows.
size_t checked_bytes(std::span<const int64_t> shape, DType dtype, const std::string& what);

}  // namespace aerie
