// Safetensors: every number of the header is checked against the file before it is used.
#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/utf8.h"
#include "io/json.h"
#include "io/tensor_limit.h"

namespace aerie {
namespace {

constexpr size_t kMaxHeaderBytes = 100'000'000;

DType parse_dtype(const std::string& text, const std::string& what) {
    constexpr std::array<std::pair<std::string_view, DType>, 6> kTypes{{{"F32", DType::F32},
                                                                        {"F16", DType::F16},
                                                                        {"BF16", DType::BF16},
                                                                        {"I64", DType::I64},
                                                                        {"I32", DType::I32},
                                                                        {"BOOL", DType::Bool}}};
    for (const auto& [name, type] : kTypes) {
        if (text == name) return type;
    }
    throw Error(what + ": type " + in_quotes(text) + ", expected F32, F16, BF16, I64, I32 or BOOL");
}

std::vector<int64_t> parse_integers(const Json& json, const char* key, const std::string& what) {
    std::vector<int64_t> numbers;
    if (!json.array()) throw Error(what + ": " + key + " is no array");
    for (const Json& element : *json.array()) {
        int64_t number = 0;
        if (!element.integer(number) || number < 0) {
            throw Error(what + ": " + key + " holds something other than sizes");
        }
        numbers.push_back(number);
    }
    return numbers;
}

// Parses one entry of the header. Its data_offsets count from the start of the data block, lie
// inside of it and match the shape.
NamedTensor parse_tensor(const std::string& name, const Json& entry, size_t data_bytes,
                         const std::string& file) {
    const std::string what = file + ": tensor " + in_quotes(name);
    const Json* dtype = entry.find("dtype");
    const Json* shape = entry.find("shape");
    const Json* offsets = entry.find("data_offsets");
    if (!dtype || !dtype->string() || !shape || !offsets || entry.object()->size() != 3) {
        throw Error(what + ": expected exactly dtype, shape and data_offsets");
    }
    NamedTensor tensor{
        name, parse_dtype(*dtype->string(), what), parse_integers(*shape, "shape", what), {}};
    const std::vector<int64_t> ends = parse_integers(*offsets, "data_offsets", what);
    if (ends.size() != 2 || ends[0] > ends[1] || size_t(ends[1]) > data_bytes) {
        throw Error(what + ": data_offsets outside the " + std::to_string(data_bytes) +
                    " bytes of data; the file is cut short or damaged: download it again");
    }
    tensor.data = {size_t(ends[0]), size_t(ends[1]) - size_t(ends[0])};
    const size_t expected = checked_bytes(tensor.shape, tensor.dtype, what);
    if (tensor.data.size_bytes != expected) {
        throw Error(what + ": shape " + tensor.shape_text() + " of " + aerie::name(tensor.dtype) +
                    " needs " + std::to_string(expected) + " bytes, data_offsets give " +
                    std::to_string(tensor.data.size_bytes));
    }
    return tensor;
}

void check_metadata(const Json& metadata, const std::string& file) {
    const bool fine =
        metadata.object() && std::all_of(metadata.object()->begin(), metadata.object()->end(),
                                         [](const auto& member) { return member.second.string(); });
    if (!fine) throw Error(file + ": __metadata__ is no object of strings");
}

void check_tiling(const std::vector<NamedTensor>& tensors, size_t data_bytes,
                  const std::string& file) {
    std::vector<const NamedTensor*> in_order;
    for (const NamedTensor& tensor : tensors) in_order.push_back(&tensor);
    std::sort(in_order.begin(), in_order.end(), [](const NamedTensor* a, const NamedTensor* b) {
        return std::pair(a->data.begin, a->data.size_bytes) <
               std::pair(b->data.begin, b->data.size_bytes);
    });
    size_t end = 0;
    for (const NamedTensor* tensor : in_order) {
        const FileRange& range = tensor->data;
        if (range.begin != end) {
            throw Error(file + ": the data of tensor " + in_quotes(tensor->name) +
                        (range.begin < end ? " overlaps another's" : " has a gap before it") +
                        ", at byte " + std::to_string(std::min(range.begin, end)) + " of the data");
        }
        end = range.end();
    }
    if (end != data_bytes) {
        throw Error(file + ": " + std::to_string(data_bytes) + " bytes of data, the tensors take " +
                    std::to_string(end));
    }
}

// The JSON text of the header, which follows 8 bytes of length.
std::string read_header(const ByteSource& source, const std::string& file) {
    uint8_t raw[sizeof(uint64_t)] = {};
    if (source.size_bytes() < sizeof(raw)) {
        throw Error(file + ": " + std::to_string(source.size_bytes()) +
                    " bytes, too short for a safetensors file");
    }
    source.read(0, std::as_writable_bytes(std::span(raw)));
    uint64_t length = 0;
    for (size_t i = 0; i < sizeof(raw); ++i) length |= uint64_t(raw[i]) << (8 * i);
    const size_t most = std::min(source.size_bytes() - sizeof(raw), kMaxHeaderBytes);
    if (length > most) {
        throw Error(file + ": header of " + std::to_string(length) + " bytes, expected at most " +
                    std::to_string(most));
    }
    std::string text(size_t(length), '\0');
    source.read(sizeof(raw), std::as_writable_bytes(std::span(text)));
    return text;
}

}  // namespace

std::vector<NamedTensor> read_safetensors(const ByteSource& source, const std::string& file) {
    const std::string text = read_header(source, file);
    const size_t data_begin = sizeof(uint64_t) + text.size();
    const size_t data_bytes = source.size_bytes() - data_begin;
    const Json header = Json::parse(text, file + ": header");
    if (!header.object()) throw Error(file + ": header is no JSON object");
    if (header.object()->size() > kMaxTensors + 1) {
        throw Error(file + ": more than " + std::to_string(kMaxTensors) + " tensors");
    }
    std::vector<NamedTensor> tensors;
    for (const auto& [name, entry] : *header.object()) {
        if (name == "__metadata__")
            check_metadata(entry, file);
        else
            tensors.push_back(parse_tensor(name, entry, data_bytes, file));
    }
    check_tiling(tensors, data_bytes, file);
    for (NamedTensor& tensor : tensors) tensor.data.begin += data_begin;
    return tensors;
}

}  // namespace aerie
