// GGUF's header: every number in it is checked against the file before it is used.
#include "io/gguf/file.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "core/error.h"
#include "core/utf8.h"
#include "io/gguf/cursor.h"
#include "io/tensor_limit.h"

namespace aerie {
namespace {

constexpr size_t kMaxKeys = 65'536;
constexpr size_t kMaxNameBytes = 65'535;
constexpr size_t kMaxGgufDims = 4;
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = 1 << 20;
constexpr size_t kMinInfoBytes = 8 + 4 + 8 + 4 + 8;  // description of a tensor of one dimension
constexpr size_t kMapEntryBytes = 192;               // a key and its value, without their text

struct Counts {
    size_t tensors = 0, keys = 0;
};

size_t read_count(GgufCursor& cursor, size_t most, const char* what) {
    const uint64_t count = cursor.integer(sizeof(uint64_t), "its header");
    if (count > most) {
        cursor.fail(std::to_string(count) + " " + what + ", expected at most " +
                    std::to_string(most));
    }
    return size_t(count);
}

Counts read_start(GgufCursor& cursor) {
    constexpr uint64_t kMagic = 0x46554747;  // "GGUF"
    if (cursor.left() < sizeof(uint32_t) || cursor.integer(sizeof(uint32_t), "") != kMagic)
        cursor.fail("not in GGUF format");
    const uint32_t version = uint32_t(cursor.integer(sizeof(uint32_t), "its header"));
    if (version != 0 && (version & 0xFFFF) == 0)
        cursor.fail("a GGUF file for big-endian machines, which are not supported");
    if (version < 2 || version > 3)
        cursor.fail("GGUF version " + std::to_string(version) + ", expected 2 or 3");
    Counts counts;
    counts.tensors = read_count(cursor, kMaxTensors, "tensors");
    counts.keys = read_count(cursor, kMaxKeys, "keys");
    return counts;
}

GgufMetadata read_metadata(GgufCursor& cursor, size_t keys) {
    GgufMetadata metadata(cursor.file());
    for (size_t i = 0; i < keys; ++i) {
        std::string key;
        cursor.keep(kMapEntryBytes);
        cursor.append_string(key, kMaxNameBytes, "key " + std::to_string(i));
        const std::string what = "key " + in_quotes(key);
        GgufValue value = GgufValue::read(cursor, what);
        if (!metadata.add(std::move(key), std::move(value))) cursor.fail(what + " comes twice");
    }
    return metadata;
}

size_t alignment_of(const GgufMetadata& metadata) {
    constexpr const char* kKey = "general.alignment";
    if (!metadata.find(kKey)) return size_t(kDefaultAlignment);
    const int64_t alignment = metadata.integer(kKey);
    if (alignment < 1 || alignment > kMaxAlignment || !std::has_single_bit(uint64_t(alignment))) {
        throw Error(metadata.file() + ": " + kKey + " " + std::to_string(alignment) +
                    ", expected a power of two up to " + std::to_string(kMaxAlignment));
    }
    return size_t(alignment);
}

// Reads a shape, rows first; the product of its dimensions fits in 63 bits.
std::vector<int64_t> read_shape(GgufCursor& cursor, const std::string& what) {
    const uint64_t dims = cursor.integer(sizeof(uint32_t), what);
    if (dims < 1 || dims > kMaxGgufDims)
        cursor.fail(what + ": " + std::to_string(dims) + " dimensions, expected 1 to 4");
    std::vector<int64_t> shape;
    int64_t elements = 1;
    for (size_t i = 0; i < dims; ++i) {
        const int64_t dim = int64_t(cursor.integer(sizeof(uint64_t), what));
        if (dim < 1) cursor.fail(what + ": a dimension of " + std::to_string(dim));
        shape.push_back(dim);
        if (__builtin_mul_overflow(elements, dim, &elements)) {
            std::reverse(shape.begin(), shape.end());
            cursor.fail(what + ": shape " + shape_text(shape) + " overflows");
        }
    }
    std::reverse(shape.begin(), shape.end());
    return shape;
}

GgmlType read_ggml_type(GgufCursor& cursor, const std::string& what) {
    const uint32_t number = uint32_t(cursor.integer(sizeof(uint32_t), what));
    const GgmlTypeRow* row = find_ggml_type(number);
    if (!row) cursor.fail(what + ": type " + std::to_string(number) + " is unknown");
    return row->type;
}

// Reads the description of a tensor; its data range counts from the start of all data.
GgufTensor read_tensor_info(GgufCursor& cursor, size_t i) {
    GgufTensor tensor;
    cursor.keep(sizeof(GgufTensor) + kMapEntryBytes);
    cursor.append_string(tensor.name, kMaxNameBytes, "tensor " + std::to_string(i));
    const std::string what = "tensor " + in_quotes(tensor.name);
    tensor.shape = read_shape(cursor, what);
    tensor.type = read_ggml_type(cursor, what);
    tensor.data.begin = size_t(cursor.integer(sizeof(uint64_t), what));
    const std::string named = cursor.file() + ": " + what;
    const size_t row_bytes = checked_bytes(size_t(tensor.row_elements()), tensor.type, named);
    if (__builtin_mul_overflow(row_bytes, size_t(tensor.rows()), &tensor.data.size_bytes))
        cursor.fail(what + ": shape " + tensor.shape_text() + " overflows");
    return tensor;
}

void read_tensor_infos(GgufCursor& cursor, size_t count, std::vector<GgufTensor>& tensors) {
    if (count > cursor.left() / kMinInfoBytes) {
        cursor.fail(std::to_string(count) + " tensors, and " + std::to_string(cursor.left()) +
                    " bytes of the file are left");
    }
    tensors.reserve(count);
    std::unordered_set<std::string_view> names;  // views into `tensors`, which does not reallocate
    for (size_t i = 0; i < count; ++i) {
        tensors.push_back(read_tensor_info(cursor, i));
        const std::string& name = tensors.back().name;
        if (!names.insert(name).second) cursor.fail("tensor " + in_quotes(name) + " comes twice");
    }
}

// Checks the data ranges and moves them to their place in the file.
void place(std::vector<GgufTensor>& tensors, const GgufCursor& cursor, size_t alignment) {
    const size_t file_bytes = cursor.at() + cursor.left();
    const size_t begin = (cursor.at() + alignment - 1) / alignment * alignment;
    const size_t data_bytes = begin < file_bytes ? file_bytes - begin : 0;
    for (GgufTensor& tensor : tensors) {
        const std::string what = "tensor " + in_quotes(tensor.name);
        const auto& [at, size] = tensor.data;
        if (at % alignment != 0) {
            cursor.fail(what + ": offset " + std::to_string(at) + " is no multiple of " +
                        std::to_string(alignment));
        }
        if (size > data_bytes || at > data_bytes - size) {
            cursor.fail(what + ": " + std::to_string(size) + " bytes from offset " +
                        std::to_string(at) + " on do not lie in the " + std::to_string(data_bytes) +
                        " bytes of data; the file is cut short or damaged: download it again");
        }
        tensor.data.begin += begin;
    }
}

// Checks that the tensors follow each other, in any order, each at the next multiple of the
// alignment.
void check_tiling(const std::vector<GgufTensor>& tensors, const GgufCursor& cursor,
                  size_t alignment) {
    std::vector<const GgufTensor*> in_order;
    for (const GgufTensor& tensor : tensors) in_order.push_back(&tensor);
    std::sort(in_order.begin(), in_order.end(), [](const GgufTensor* a, const GgufTensor* b) {
        return a->data.begin < b->data.begin;
    });
    size_t end = cursor.at();
    for (const GgufTensor* tensor : in_order) {
        const FileRange& range = tensor->data;
        if (range.begin < end || range.begin - end >= alignment) {
            cursor.fail("the data of tensor " + in_quotes(tensor->name) +
                        (range.begin < end ? " overlaps another's" : " has a gap before it") +
                        ", at byte " + std::to_string(std::min(range.begin, end)));
        }
        end = range.end();
    }
}

}  // namespace

int64_t GgufTensor::rows() const {
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    return rows;
}

GgufTensor part_of(const GgufTensor& stacked, int64_t i, std::string name) {
    const size_t bytes = stacked.data.size_bytes / size_t(stacked.shape.front());
    GgufTensor part = stacked;
    part.name = std::move(name);
    part.shape.erase(part.shape.begin());
    part.data = {stacked.data.begin + size_t(i) * bytes, bytes};
    return part;
}

GgufFile read_gguf(const ByteSource& source, const std::string& file) {
    GgufCursor cursor(source, file);
    const Counts counts = read_start(cursor);
    GgufFile result;
    result.metadata = read_metadata(cursor, counts.keys);
    read_tensor_infos(cursor, counts.tensors, result.tensors);
    const size_t alignment = alignment_of(result.metadata);
    place(result.tensors, cursor, alignment);
    check_tiling(result.tensors, cursor, alignment);
    return result;
}

}  // namespace aerie
