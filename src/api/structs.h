// Reads and writes structs of other header versions: members that the caller does not know are
// zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "api/border.h"
#include "core/error.h"

namespace aerie::api {

// Size of a struct in the first release, in which `last` was its last member. No program has a
// smaller one. New members are added behind it, so these lines never change.
template <class Struct>
constexpr size_t whole_bytes(size_t end) {
    return (end + alignof(Struct) - 1) / alignof(Struct) * alignof(Struct);
}
#define AERIE_FIRST_BYTES(type, last)                                        \
    inline constexpr size_t first_bytes(const type*) {                       \
        return whole_bytes<type>(offsetof(type, last) + sizeof(type::last)); \
    }
AERIE_FIRST_BYTES(aerie_device, is_best)
AERIE_FIRST_BYTES(aerie_model_options, progress_user)
AERIE_FIRST_BYTES(aerie_forecast, largest_context)
AERIE_FIRST_BYTES(aerie_model_info, has_chat_template)
AERIE_FIRST_BYTES(aerie_sampling, presence)
AERIE_FIRST_BYTES(aerie_request, edit_user)
AERIE_FIRST_BYTES(aerie_step, token_count)
AERIE_FIRST_BYTES(aerie_answer, finish)
AERIE_FIRST_BYTES(aerie_token, alternative_count)
AERIE_FIRST_BYTES(aerie_cycle, next)
AERIE_FIRST_BYTES(aerie_statistics, host_seconds)
AERIE_FIRST_BYTES(aerie_listed_model, weight_bytes)
#undef AERIE_FIRST_BYTES

// Throws UsageError unless the size that `given` begins with is possible for a struct of at least
// `least` bytes.
size_t checked_size(const void* given, size_t least, const char* type);
template <class Struct>
size_t checked_size(const Struct* given, const char* type) {
    return checked_size(given, first_bytes(given), type);
}

// The struct in this version's form. Also throws UsageError if the caller set members that this
// version does not know.
template <class Struct>
Struct read_struct(const Struct* given, const char* type) {
    const size_t size = checked_size(given, type);
    Struct own;
    std::memset(&own, 0, sizeof(own));
    std::memcpy(&own, given, std::min(size, sizeof(own)));
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    if (size > sizeof(own) &&
        std::any_of(bytes + sizeof(own), bytes + size, [](int b) { return b; }))
        throw UsageError(std::string(type) +
                         " holds what this version of the library does not know");
    own.size = sizeof(own);
    return own;
}

// Writes the members that the caller knows; members beyond this version become zero.
template <class Struct>
void write_struct(Struct* out, const Struct& value, const char* type) {
    const size_t size = checked_size(out, type);
    auto* bytes = reinterpret_cast<unsigned char*>(out);
    const auto* from = reinterpret_cast<const unsigned char*>(&value);
    const size_t known = std::min(size, sizeof(value));
    std::memcpy(bytes + sizeof(size_t), from + sizeof(size_t), known - sizeof(size_t));
    std::memset(bytes + known, 0, size - known);
}

// Throws UsageError naming `what` if the pointer is null.
template <class T>
T& given(T* pointer, const char* what) {
    if (!pointer) throw UsageError(std::string(what) + " is null");
    return *pointer;
}
// A list; `first` may be null if the list is empty.
template <class T>
std::span<const T> given_list(const T* first, size_t count, const char* what) {
    if (count > 0) given(first, what);
    return {first, count};
}
// A text of this many bytes, or up to its NUL if 0.
std::string_view given_text(const char* text, size_t bytes, const char* what);

// A path as the header shows it.
inline std::string utf8_of(const std::filesystem::path& path) {
    const std::u8string text = path.u8string();
    return {text.begin(), text.end()};
}

// Memory that the caller frees with aerie_free.
struct FreeGiven {
    void operator()(void* memory) const { ::operator delete(memory); }
};
template <class T>
using Given = std::unique_ptr<T, FreeGiven>;

template <class T>
Given<T> to_give(std::span<const T> values, size_t zeros_behind = 0) {
    const size_t count = values.size() + zeros_behind;
    Given<T> made(static_cast<T*>(::operator new(std::max<size_t>(count, 1) * sizeof(T))));
    std::copy(values.begin(), values.end(), made.get());
    std::fill_n(made.get() + values.size(), zeros_behind, T());
    return made;
}
inline Given<char> to_give(std::string_view text) {
    return to_give(std::span<const char>(text.data(), text.size()), 1);
}

// A failure as aerie_context_failure gives it.
inline void give_failure(const Message& failure, char** message, aerie_cause* cause) {
    if (message) *message = to_give(std::string_view(failure.text())).release();
    if (cause) *cause = failure.cause();
}

}  // namespace aerie::api
