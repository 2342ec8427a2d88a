// The border between C and C++: no exception crosses it, and each failure leaves a message of one
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/aerie.h"

namespace aerie::api {

// A message of one line, and the cause of what it tells. Setting it allocates nothing.
class Message {
  public:
    void set(std::string_view text, aerie_cause cause) noexcept;
    const char* text() const { return text_; }
    aerie_cause cause() const { return cause_; }

  private:
    static constexpr size_t kMaxBytes = 1000;
    aerie_cause cause_ = AERIE_CAUSE_NONE;
    char text_[kMaxBytes + 1] = {};
};

// Thrown when a callback of the caller asks to cancel.
struct Cancelled {};

// For handles that several threads use at once: for each kind of handle, a thread keeps the message
// of its newest failure.
enum class HandleKind { context, model };
struct ThreadMessage {
    uint64_t owner = 0;
    Message message;
};
ThreadMessage& thread_message(HandleKind kind) noexcept;
uint64_t new_owner() noexcept;  // a number that no other handle has

constexpr const char* kNullHandle = "the handle is null";

// Converts the exception that is being handled to a status and a message.
aerie_status caught(Message& message) noexcept;

// Runs the work of an API function for a handle, and converts exceptions to a status and a message.
template <class Handle, class Do>
aerie_status enter(Handle* handle, Do&& what) noexcept {
    if (!handle) return AERIE_USAGE;
    try {
        what();
        return AERIE_OK;
    } catch (...) {
        const aerie_status status = caught(handle->message());
        handle->note_failure();
        return status;
    }
}

// The same for functions that return a handle or memory in `out`, which is null after a failure.
template <class Handle, class Out, class Do>
aerie_status enter_to_make(Handle* handle, Out** out, Do&& what) noexcept {
    if (out) *out = nullptr;
    return enter(handle, what);
}

}  // namespace aerie::api
