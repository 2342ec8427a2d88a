// A small writer of GGUF files, right by default and wrong on request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/write_files.h"

namespace aerie::test {

// The place of a number in a file.
struct NumberPlace {
    std::string what;
    size_t at = 0, bytes = 0;
};

// Bytes, and the places of the numbers among them.
struct MarkedText {
    std::string text;
    std::vector<NumberPlace> numbers;

    void number(uint64_t value, size_t bytes, std::string what) {
        numbers.push_back({std::move(what), text.size(), bytes});
        text += little_endian(value, bytes);
    }
    void string(std::string_view value, const std::string& what) {
        number(value.size(), 8, "length of " + what);
        text += value;
    }
    void append(const MarkedText& other) {
        for (const NumberPlace& place : other.numbers)
            numbers.push_back({place.what, text.size() + place.at, place.bytes});
        text += other.text;
    }
};

struct GgufTensorText {
    std::string name = {};
    uint32_t type = 0;                // F32
    std::vector<uint64_t> dims = {};  // as in the file: the elements of a row first
    std::string data = {};
    std::optional<uint64_t> offset = {};  // instead of the next free one
};

class GgufWriter {
  public:
    uint32_t version = 3;
    size_t alignment = 32;  // for the data; the key general.alignment is written separately
    std::optional<uint64_t> tensor_count = {}, key_count = {};

    // A value as its bytes; an array's bytes begin with element type and count.
    GgufWriter& value(const std::string& key, uint32_t type, std::string_view bytes) {
        begin_value(key, type);
        keys_.text += bytes;
        return *this;
    }
    GgufWriter& number(const std::string& key, uint32_t type, uint64_t value, size_t bytes) {
        begin_value(key, type);
        keys_.number(value, bytes, "value of " + key);
        return *this;
    }
    GgufWriter& u32(const std::string& key, uint32_t value) { return number(key, 4, value, 4); }
    GgufWriter& string(const std::string& key, std::string_view text) {
        begin_value(key, 8);
        keys_.string(text, "value of " + key);
        return *this;
    }
    GgufWriter& strings(const std::string& key, const std::vector<std::string>& texts) {
        begin_array(key, 8, texts.size());
        for (const std::string& text : texts) keys_.string(text, "string of " + key);
        return *this;
    }
    GgufWriter& array(const std::string& key, uint32_t type, uint64_t count,
                      std::string_view bytes) {
        begin_array(key, type, count);
        keys_.text += bytes;
        return *this;
    }
    GgufWriter& tensor(const GgufTensorText& tensor) {
        tensors_.push_back(tensor);
        return *this;
    }

    // The file without its data and the padding before it.
    MarkedText header() const {
        MarkedText out;
        out.text = "GGUF";
        out.number(version, 4, "version");
        out.number(tensor_count.value_or(tensors_.size()), 8, "tensor count");
        out.number(key_count.value_or(key_count_), 8, "key count");
        out.append(keys_);
        size_t free = 0;
        for (const GgufTensorText& tensor : tensors_) {
            out.string(tensor.name, "tensor name");
            out.number(tensor.dims.size(), 4, "dimensions of " + tensor.name);
            for (const uint64_t dim : tensor.dims)
                out.number(dim, 8, "dimension of " + tensor.name);
            out.number(tensor.type, 4, "type of " + tensor.name);
            out.number(tensor.offset.value_or(free), 8, "offset of " + tensor.name);
            free = aligned(free + tensor.data.size());
        }
        return out;
    }
    std::string file() const {
        std::string text = header().text;
        for (const GgufTensorText& tensor : tensors_) {
            text.resize(aligned(text.size()), '\0');
            text += tensor.data;
        }
        return text;
    }

  private:
    void begin_value(const std::string& key, uint32_t type) {
        ++key_count_;
        keys_.string(key, "key " + key);
        keys_.number(type, 4, "type of " + key);
    }
    void begin_array(const std::string& key, uint32_t type, uint64_t count) {
        begin_value(key, 9);
        keys_.number(type, 4, "element type of " + key);
        keys_.number(count, 8, "count of " + key);
    }
    size_t aligned(size_t at) const { return (at + alignment - 1) / alignment * alignment; }

    MarkedText keys_;
    size_t key_count_ = 0;
    std::vector<GgufTensorText> tensors_;
};

}  // namespace aerie::test
