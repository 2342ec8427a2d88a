// Metadata of GGUF: how values are read, held and given out.
#include "io/gguf/metadata.h"

#include <array>
#include <bit>

#include "core/error.h"
#include "core/utf8.h"
#include "io/gguf/cursor.h"

namespace aerie {
namespace {

struct TypeRow {
    const char* name;
    size_t bytes;  // 0: strings and arrays, which have a length
};

constexpr std::array<TypeRow, 13> kTypes{{{"u8", 1},
                                          {"i8", 1},
                                          {"u16", 2},
                                          {"i16", 2},
                                          {"u32", 4},
                                          {"i32", 4},
                                          {"f32", 4},
                                          {"bool", 1},
                                          {"string", 0},
                                          {"array", 0},
                                          {"u64", 8},
                                          {"i64", 8},
                                          {"f64", 8}}};

const TypeRow& row(GgufType type) {
    return kTypes[size_t(type)];
}

GgufType read_type(GgufCursor& cursor, const std::string& what) {
    const uint64_t number = cursor.integer(4, what);
    if (number >= kTypes.size())
        cursor.fail(what + " is of type " + std::to_string(number) + ", expected 0 to 12");
    return GgufType(number);
}

bool is_signed(GgufType type) {
    return type == GgufType::I8 || type == GgufType::I16 || type == GgufType::I32 ||
           type == GgufType::I64;
}

// Two's complement of `bytes` bytes, extended to 64 bits.
int64_t extended(uint64_t raw, size_t bytes) {
    const size_t shift = 64 - 8 * bytes;
    return int64_t(raw << shift) >> shift;
}

}  // namespace

GgufValue GgufValue::read(GgufCursor& cursor, const std::string& what) {
    GgufValue value;
    value.type_ = read_type(cursor, what);
    value.is_array_ = value.type_ == GgufType::Array;
    if (value.is_array_) {
        value.type_ = read_type(cursor, what);
        if (value.type_ == GgufType::Array) cursor.fail(what + " is an array of arrays");
        const uint64_t count = cursor.integer(sizeof(uint64_t), what);
        const size_t least = value.is_strings() ? sizeof(uint64_t) : row(value.type_).bytes;
        if (count > cursor.left() / least) {
            cursor.fail(what + " is an array of " + std::to_string(count) + " " +
                        row(value.type_).name + ", and " + std::to_string(cursor.left()) +
                        " bytes of the file are left; it is cut short or damaged: download it "
                        "again");
        }
        value.size_ = size_t(count);
    }
    value.read_elements(cursor, what);
    return value;
}

void GgufValue::read_elements(GgufCursor& cursor, const std::string& what) {
    if (is_strings()) {
        cursor.keep(size_ * sizeof(uint32_t));
        ends_.reserve(size_);
        for (size_t i = 0; i < size_; ++i) {
            cursor.append_string(bytes_, SIZE_MAX, what);
            ends_.push_back(uint32_t(bytes_.size()));
        }
        bytes_.shrink_to_fit();
        return;
    }
    const size_t bytes = size_ * row(type_).bytes;
    cursor.keep(bytes);
    bytes_.resize(bytes);
    cursor.take(std::as_writable_bytes(std::span(bytes_)), what);
    if (type_ != GgufType::Bool) return;
    for (const char c : bytes_)
        if (uint8_t(c) > 1) cursor.fail(what + " holds a boolean that is neither 0 nor 1");
}

bool GgufValue::is_integers() const {
    return type_ == GgufType::U8 || type_ == GgufType::U16 || type_ == GgufType::U32 ||
           type_ == GgufType::U64 || is_signed(type_);
}

bool GgufValue::is_numbers() const {
    return is_integers() || type_ == GgufType::F32 || type_ == GgufType::F64;
}

std::string GgufValue::kind() const {
    const std::string element = row(type_).name;
    return is_array_ ? "array of " + std::to_string(size_) + " " + element : element;
}

uint64_t GgufValue::raw(size_t i) const {
    const size_t bytes = row(type_).bytes;
    uint64_t value = 0;
    for (size_t k = 0; k < bytes; ++k) value |= uint64_t(uint8_t(bytes_[i * bytes + k])) << (8 * k);
    return value;
}

std::optional<int64_t> GgufValue::integer(size_t i) const {
    const uint64_t value = raw(i);
    if (is_signed(type_)) return extended(value, row(type_).bytes);
    if (value > uint64_t(INT64_MAX)) return std::nullopt;
    return int64_t(value);
}

double GgufValue::number(size_t i) const {
    const uint64_t value = raw(i);
    if (type_ == GgufType::F32) return std::bit_cast<float>(uint32_t(value));
    if (type_ == GgufType::F64) return std::bit_cast<double>(value);
    return is_signed(type_) ? double(extended(value, row(type_).bytes)) : double(value);
}

std::string_view GgufValue::string(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
}

bool GgufValue::boolean(size_t i) const {
    return bytes_[i] != 0;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

bool GgufMetadata::add(std::string key, GgufValue value) {
    return values_.emplace(std::move(key), std::move(value)).second;
}

const GgufValue& GgufMetadata::get(std::string_view key, const char* expected, bool is_array,
                                   bool (*fits)(const GgufValue&)) const {
    const GgufValue* value = find(key);
    if (!value) throw Error(file_ + ": no key " + in_quotes(key));
    if (value->is_array() != is_array || !fits(*value)) {
        throw Error(file_ + ": key " + in_quotes(key) + " is " + value->kind() + ", expected " +
                    expected);
    }
    return *value;
}

int64_t GgufMetadata::integer(std::string_view key) const {
    const GgufValue& value =
        get(key, "an integer", false, [](const GgufValue& v) { return v.is_integers(); });
    const std::optional<int64_t> integer = value.integer();
    if (!integer) throw Error(file_ + ": key " + in_quotes(key) + " does not fit in 63 bits");
    return *integer;
}

double GgufMetadata::number(std::string_view key) const {
    return get(key, "a number", false, [](const GgufValue& v) { return v.is_numbers(); }).number();
}

bool GgufMetadata::boolean(std::string_view key) const {
    return get(key, "a boolean", false,
               [](const GgufValue& v) { return v.type() == GgufType::Bool; })
        .boolean();
}

std::string_view GgufMetadata::string(std::string_view key) const {
    return get(key, "a string", false, [](const GgufValue& v) { return v.is_strings(); }).string();
}

const GgufValue& GgufMetadata::integers(std::string_view key) const {
    return get(key, "an array of integers", true,
               [](const GgufValue& v) { return v.is_integers(); });
}

const GgufValue& GgufMetadata::numbers(std::string_view key) const {
    return get(key, "an array of numbers", true, [](const GgufValue& v) { return v.is_numbers(); });
}

const GgufValue& GgufMetadata::strings(std::string_view key) const {
    return get(key, "an array of strings", true, [](const GgufValue& v) { return v.is_strings(); });
}

}  // namespace aerie
