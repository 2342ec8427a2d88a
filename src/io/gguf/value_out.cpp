// Values of GGUF metadata on their way into a file.
#include <cstring>

#include "io/gguf/bytes.h"
#include "io/gguf/metadata.h"

namespace aerie {

template <class T>
GgufValue GgufValue::plain(GgufType type, bool is_array, std::span<const T> values) {
    GgufValue value;
    value.type_ = type;
    value.is_array_ = is_array;
    value.size_ = values.size();
    for (const T& element : values) {
        uint64_t bits = 0;
        std::memcpy(&bits, &element, sizeof(element));
        append_number(value.bytes_, bits, sizeof(element));
    }
    return value;
}

GgufValue GgufValue::of(uint32_t value) {
    return plain(GgufType::U32, false, std::span<const uint32_t>(&value, 1));
}
GgufValue GgufValue::of(float value) {
    return plain(GgufType::F32, false, std::span<const float>(&value, 1));
}
GgufValue GgufValue::of(bool value) {
    return plain(GgufType::Bool, false, std::span<const bool>(&value, 1));
}
GgufValue GgufValue::of(std::string_view value) {
    GgufValue made = list({value});
    made.is_array_ = false;
    return made;
}
GgufValue GgufValue::list(std::span<const int32_t> values) {
    return plain(GgufType::I32, true, values);
}
GgufValue GgufValue::list(std::span<const float> values) {
    return plain(GgufType::F32, true, values);
}
GgufValue GgufValue::list(std::span<const bool> values) {
    return plain(GgufType::Bool, true, values);
}
GgufValue GgufValue::list(const std::vector<std::string_view>& values) {
    GgufValue made;
    made.type_ = GgufType::String;
    made.is_array_ = true;
    made.size_ = values.size();
    for (const std::string_view value : values) {
        made.bytes_ += value;
        made.ends_.push_back(uint32_t(made.bytes_.size()));
    }
    return made;
}

void GgufValue::write(std::string& out) const {
    if (is_array_) append_number(out, uint64_t(GgufType::Array), 4);
    append_number(out, uint64_t(type_), 4);
    if (is_array_) append_number(out, size_, 8);
    if (!is_strings()) {
        out += bytes_;
        return;
    }
    for (size_t i = 0; i < size_; ++i) append_text(out, string(i));
}

}  // namespace aerie
