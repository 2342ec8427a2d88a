// The metadata of a GGUF file: numbers, strings and arrays of them, by key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aerie {

class GgufCursor;

// Value types by their numbers in files. The elements of an array have one of the other types.
enum class GgufType : uint32_t {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
};

// One value, or an array, with its elements stored contiguously as they are in the file.
class GgufValue {
  public:
    // Reads the value that follows in the file. Refuses arrays in arrays, booleans other than 0 and
    // 1, and counts or lengths beyond the file's end. `what` names the value. Throws Error.
    static GgufValue read(GgufCursor& cursor, const std::string& what);

    // Make a value that is to be written.
    static GgufValue of(uint32_t value);
    static GgufValue of(float value);
    static GgufValue of(bool value);
    static GgufValue of(std::string_view value);
    static GgufValue list(std::span<const int32_t> values);
    static GgufValue list(std::span<const float> values);
    static GgufValue list(std::span<const bool> values);
    static GgufValue list(const std::vector<std::string_view>& values);
    // Appends the type and the value as a file stores them.
    void write(std::string& out) const;

    GgufType type() const { return type_; }  // for an array, of its elements
    bool is_array() const { return is_array_; }
    bool is_integers() const;  // integers of any size
    bool is_numbers() const;   // integers or floating-point numbers; no booleans
    bool is_strings() const { return type_ == GgufType::String; }
    size_t size() const { return size_; }  // elements; 1 unless it is an array
    std::string kind() const;              // "u32", "array of 3 string"

    // The i-th element, i < size(), which is 0 unless this is an array. The value must be of the
    // kind asked for: integers, numbers, strings, booleans.
    std::optional<int64_t> integer(size_t i = 0) const;  // nullopt if it does not fit
    double number(size_t i = 0) const;
    std::string_view string(size_t i = 0) const;
    bool boolean(size_t i = 0) const;

  private:
    template <class T>
    static GgufValue plain(GgufType type, bool is_array, std::span<const T> values);
    void read_elements(GgufCursor& cursor, const std::string& what);
    uint64_t raw(size_t i) const;

    GgufType type_ = GgufType::U8;
    bool is_array_ = false;
    size_t size_ = 1;
    std::string bytes_;           // numbers as in the file; strings back to back
    std::vector<uint32_t> ends_;  // end of each string in bytes_
};

// Views and references live as long as the metadata.
class GgufMetadata {
  public:
    explicit GgufMetadata(std::string file = "") : file_(std::move(file)) {}

    const GgufValue* find(std::string_view key) const;  // nullptr if absent

    // The value of a key. Throws Error naming file and key if it is absent or of another kind; an
    // integer also if it does not fit. A number may be an integer.
    int64_t integer(std::string_view key) const;
    double number(std::string_view key) const;
    bool boolean(std::string_view key) const;
    std::string_view string(std::string_view key) const;
    // The same for arrays.
    const GgufValue& integers(std::string_view key) const;
    const GgufValue& numbers(std::string_view key) const;
    const GgufValue& strings(std::string_view key) const;

    const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
    const std::string& file() const { return file_; }
    // Adds a value; returns false if the key exists.
    bool add(std::string key, GgufValue value);

  private:
    const GgufValue& get(std::string_view key, const char* expected, bool is_array,
                         bool (*fits)(const GgufValue&)) const;

    std::string file_;  // for errors
    std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace aerie
