// The border between C and C++: no exception crosses it, and each failure leaves one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/aerie.h"

namespace aerie::api {

// One line of text. Setting it needs no memory.
class Message {
  public:
    void set(std::string_view text) noexcept;
    const char* text() const { return text_; }

  private:
    static constexpr size_t kMaxBytes = 1000;
    char text_[kMaxBytes + 1] = {};
};

// What a callback of the caller's asked for.
struct Cancelled {};

// For handles that several threads use at once: of each kind, a thread has the message of its
// newest failure.
enum class HandleKind { context, model };
struct ThreadMessage {
    uint64_t owner = 0;
    Message message;
};
ThreadMessage& thread_message(HandleKind kind) noexcept;
uint64_t new_owner() noexcept;  // a number that no other handle has

constexpr const char* kNullHandle = "the handle is null";

// The exception that is being handled, as a status and a message.
aerie_status caught(Message& message) noexcept;

// Runs what a function of the library does with a handle.
template <class Handle, class Do>
aerie_status enter(Handle* handle, Do&& what) noexcept {
    if (!handle) return AERIE_USAGE;
    try {
        what();
        return AERIE_OK;
    } catch (...) {
        return caught(handle->message());
    }
}

// The same where what the caller gets is a handle or memory: null unless all went well.
template <class Handle, class Out, class Do>
aerie_status enter_to_make(Handle* handle, Out** out, Do&& what) noexcept {
    if (out) *out = nullptr;
    return enter(handle, what);
}

}  // namespace aerie::api
