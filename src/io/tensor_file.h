// What every weight file format yields: named tensors, and where in the file their data lies.
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

// Bytes of a file.
struct FileRange {
    size_t begin = 0, size_bytes = 0;
    size_t end() const { return begin + size_bytes; }
};

// Bytes of a file and their CRC-32; 0 where the file does not say.
struct CheckedRange {
    FileRange range;
    uint32_t crc = 0;
};

struct NamedTensor {
    std::string name;
    DType dtype = DType::F32;
    std::vector<int64_t> shape;  // row-major, contiguous; at most 8 dimensions
    FileRange data;              // exactly as long as shape and dtype say; begins at any byte
    CheckedRange checked = {};   // around the data, where the file has checksums
    std::optional<DType> file_type = {};  // where it is read as another one: see Checkpoint::fit

    std::string shape_text() const { return aerie::shape_text(shape); }
};

// Throws Error (naming `what`) if the checksum of a tensor that has one is another one.
void check_tensor(const ByteSource& file, const NamedTensor& tensor, const std::string& what);

// A small part of a file. Errors as above.
std::string read_checked(const ByteSource& file, const CheckedRange& part, const std::string& what);

// Product of the dimensions times the element size. Throws Error (naming `what`) if a dimension is
// negative, there are more than 8, or the product overflows.
size_t checked_bytes(std::span<const int64_t> shape, DType dtype, const std::string& what);

}  // namespace aerie
