// One GGUF file: a header of metadata and tensor descriptions, then the data of the tensors.
#pragma once

#include <string>
#include <vector>

#include "io/gguf/blocks.h"
#include "io/gguf/metadata.h"
#include "io/tensor_file.h"

namespace aerie {

struct GgufTensor {
    std::string name;
    GgmlType type = GgmlType::F32;
    std::vector<int64_t> shape;  // rows first, the reverse of the file's; 1 to 4 dimensions, none 0
    FileRange data;              // exactly as long as shape and type say
    size_t piece = 0;            // index of the file, in a model of several files

    int64_t row_elements() const { return shape.back(); }  // fill whole blocks
    int64_t rows() const;                                  // product of the other dimensions
    size_t row_bytes() const { return data.size_bytes / size_t(rows()); }
    std::string shape_text() const { return aerie::shape_text(shape); }
};

// The i-th of shape[0] parts of a tensor of two or more dimensions, such as one of stacked experts;
// it has shape [shape[1], ...]. 0 <= i < shape[0].
GgufTensor part_of(const GgufTensor& stacked, int64_t i, std::string name);

struct GgufFile {
    GgufMetadata metadata;
    std::vector<GgufTensor> tensors;  // in the order of the header
};

// Reads versions 2 and 3, little-endian. `file` names the source in errors. Refuses more than
// 65,536 keys or tensors, 100 MB of header, keys and names that come twice, types of unknown block
// size, rows that are not whole blocks, and data that is not aligned, overlaps, leaves gaps beyond
// its padding or ends early; bytes after the last tensor are ignored. Only the header is read.
// Throws Error.
GgufFile read_gguf(const ByteSource& source, const std::string& file);

}  // namespace aerie
