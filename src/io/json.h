// JSON values, read strictly (duplicate keys, depth over 64, too many values, one of more than 16
// MB, a NUL and trailing text are errors; a byte order mark at the start is skipped) and written
// for machines. The parser is nlohmann's; its header stays in json.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/variant.h"

namespace aerie {

// One member of a member of the document, such as "vocab" of "model". Its content is handed over as
// it is read and is not stored, for lists that are too long for one Json per element. An Error that
// a call throws ends the parse, which puts the name of the file in front. A kind of content without
// an override is refused.
class JsonPart {
  public:
    JsonPart(std::string outer, std::string inner)
        : outer(std::move(outer)), inner(std::move(inner)) {}
    virtual ~JsonPart() = default;

    virtual void open(bool is_array);
    virtual void close();
    virtual void key(std::string_view name);
    virtual void string(std::string_view value);
    virtual void integer(int64_t value);
    virtual void other();  // null, a boolean, or a number that is not an int64

    const std::string outer, inner;
};

class Json {
  public:
    using Array = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;  // in file order

    Json() = default;  // null
    Json(bool value) : value_(value) {}
    Json(int value) : value_(int64_t(value)) {}
    Json(int64_t value) : value_(value) {}
    Json(uint64_t value) : value_(value) {}
    Json(float value) : value_(double(value)) {}
    Json(double value) : value_(value) {}
    Json(const char* value) : value_(std::string(value)) {}
    Json(std::string value) : value_(std::move(value)) {}
    Json(Array value) : value_(std::move(value)) {}
    Json(Object value) : value_(std::move(value)) {}

    // `source` names the file in errors. A value can take 20 times the bytes of its text, so
    // `max_values` bounds the memory. Throws Error.
    static Json parse(std::string_view text, const std::string& source,
                      size_t max_values = 1'000'000) {
        return parse(text, source, {}, max_values);
    }
    // The same, but the members that `parts` name are handed to these parts, and are null in the
    // result.
    static Json parse(std::string_view text, const std::string& source,
                      std::span<JsonPart* const> parts, size_t max_values = 1'000'000);

    // Compact; strings that are not UTF-8 are written with U+FFFD; NaN and infinities as null.
    std::string dump() const;

    bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    // The value as that type, or nullptr.
    const bool* boolean() const { return std::get_if<bool>(&value_); }
    const std::string* string() const { return std::get_if<std::string>(&value_); }
    const Array* array() const { return std::get_if<Array>(&value_); }
    const Object* object() const { return std::get_if<Object>(&value_); }
    bool is_number() const;
    double number() const;               // the value as a double; 0 if it is not a number
    bool integer(int64_t& value) const;  // false unless a whole number that fits

    const Json* find(std::string_view key) const;  // the object's member; nullptr if absent
    void set(std::string key, Json value);         // appends to an object (made from null)

  private:
    void write(std::string& out) const;

    Variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

}  // namespace aerie
