// Safetensors: every number of the header is checked against the file before it is used.
#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/utf8.h"
#include "io/json.h"

namespace aerie {
namespace {

constexpr size_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxTensors = 65'536;

struct Extent {
    size_t begin = 0, end = 0;  // in the data block
};

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

// One entry of the header. The extent lies inside the data and is as long as the shape says.
NamedTensor parse_tensor(const std::string& name, const Json& entry,
                         std::span<const std::byte> data, const std::string& file, Extent& extent) {
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
    if (ends.size() != 2 || ends[0] > ends[1] || size_t(ends[1]) > data.size()) {
        throw Error(what + ": data_offsets outside the " + std::to_string(data.size()) +
                    " bytes of data");
    }
    extent = {size_t(ends[0]), size_t(ends[1])};
    const size_t expected = checked_bytes(tensor.shape, tensor.dtype, what);
    if (extent.end - extent.begin != expected) {
        throw Error(what + ": shape " + tensor.shape_text() + " of " + aerie::name(tensor.dtype) +
                    " needs " + std::to_string(expected) + " bytes, data_offsets give " +
                    std::to_string(extent.end - extent.begin));
    }
    tensor.data = data.subspan(extent.begin, expected);
    return tensor;
}

void check_metadata(const Json& metadata, const std::string& file) {
    const bool fine =
        metadata.object() && std::all_of(metadata.object()->begin(), metadata.object()->end(),
                                         [](const auto& member) { return member.second.string(); });
    if (!fine) throw Error(file + ": __metadata__ is no object of strings");
}

void check_tiling(std::vector<Extent> extents, size_t data_bytes, const std::string& file) {
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    size_t end = 0;
    for (const Extent& extent : extents) {
        if (extent.begin != end) {
            throw Error(file + ": tensor data overlaps or has a gap at byte " +
                        std::to_string(std::min(extent.begin, end)) + " of the data");
        }
        end = extent.end;
    }
    if (end != data_bytes) {
        throw Error(file + ": " + std::to_string(data_bytes) + " bytes of data, the tensors take " +
                    std::to_string(end));
    }
}

// The JSON text. It starts after 8 bytes of length.
std::string_view header_text(std::span<const std::byte> bytes, const std::string& file) {
    uint64_t length = 0;
    if (bytes.size() < sizeof(length)) {
        throw Error(file + ": " + std::to_string(bytes.size()) +
                    " bytes, too short for a safetensors file");
    }
    for (size_t i = 0; i < sizeof(length); ++i) length |= uint64_t(bytes[i]) << (8 * i);
    const size_t most = std::min(bytes.size() - sizeof(length), kMaxHeaderBytes);
    if (length > most) {
        throw Error(file + ": header of " + std::to_string(length) + " bytes, expected at most " +
                    std::to_string(most));
    }
    return {reinterpret_cast<const char*>(bytes.data()) + sizeof(length), size_t(length)};
}

}  // namespace

std::vector<NamedTensor> read_safetensors(std::span<const std::byte> bytes,
                                          const std::string& file) {
    const std::string_view text = header_text(bytes, file);
    const std::span<const std::byte> data = bytes.subspan(sizeof(uint64_t) + text.size());
    const Json header = Json::parse(text, file + ": header");
    if (!header.object()) throw Error(file + ": header is no JSON object");
    if (header.object()->size() > kMaxTensors + 1) {
        throw Error(file + ": more than " + std::to_string(kMaxTensors) + " tensors");
    }
    std::vector<NamedTensor> tensors;
    std::vector<Extent> extents;
    for (const auto& [name, entry] : *header.object()) {
        if (name == "__metadata__") {
            check_metadata(entry, file);
            continue;
        }
        tensors.push_back(parse_tensor(name, entry, data, file, extents.emplace_back()));
    }
    check_tiling(std::move(extents), data.size(), file);
    return tensors;
}

}  // namespace aerie
