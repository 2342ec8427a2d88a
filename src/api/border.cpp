#include "api/border.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie::api {

void Message::set(std::string_view text, aerie_cause cause) noexcept {
    cause_ = cause;
    size_t bytes = std::min(text.size(), kMaxBytes);
    // A character must not be cut in the middle.
    while (bytes < text.size() && bytes > 0 && (text[bytes] & 0xC0) == 0x80) --bytes;
    std::memcpy(text_, text.data(), bytes);
    text_[bytes] = 0;
}

ThreadMessage& thread_message(HandleKind kind) noexcept {
    static thread_local constinit ThreadMessage messages[2];
    return messages[size_t(kind)];
}

uint64_t new_owner() noexcept {
    static std::atomic<uint64_t> newest = 0;
    return ++newest;
}

namespace {

// Messages quote files and arguments, which may contain any bytes.
void tell(Message& message, const char* what, aerie_cause cause) noexcept {
    try {
        message.set(printable(what), cause);
    } catch (...) {
        message.set("out of memory", cause);
    }
}

aerie_cause cause_of(Cause cause) {
    switch (cause) {
        case Cause::unknown:
            break;
        case Cause::argument:
            return AERIE_CAUSE_ARGUMENT;
        case Cause::too_long:
            return AERIE_CAUSE_TOO_LONG;
        case Cause::no_room:
            return AERIE_CAUSE_SESSIONS;
        case Cause::not_found:
            return AERIE_CAUSE_NOT_FOUND;
        case Cause::inaccessible:
            return AERIE_CAUSE_FILE;
        case Cause::damaged:
            return AERIE_CAUSE_DAMAGED;
        case Cause::unsupported:
            return AERIE_CAUSE_UNSUPPORTED;
        case Cause::other_model:
            return AERIE_CAUSE_OTHER_MODEL;
        case Cause::no_device:
            return AERIE_CAUSE_NO_DEVICE;
        case Cause::device_failed:
            return AERIE_CAUSE_DEVICE_LOST;
        case Cause::device_memory:
            return AERIE_CAUSE_DEVICE_MEMORY;
    }
    return AERIE_CAUSE_OTHER;
}

}  // namespace

aerie_status caught(Message& message) noexcept {
    try {
        throw;
    } catch (const Cancelled&) {
        message.set("cancelled", AERIE_CAUSE_CANCELLED);
        return AERIE_CANCELLED;
    } catch (const UsageError& error) {
        tell(message, error.what(), cause_of(error.cause()));
        return AERIE_USAGE;
    } catch (const Error& error) {
        tell(message, error.what(), cause_of(error.cause()));
        return AERIE_ERROR;
    } catch (const std::bad_alloc&) {
        message.set("out of memory", AERIE_CAUSE_HOST_MEMORY);
        return AERIE_OUT_OF_MEMORY;
    } catch (const std::length_error&) {
        message.set("out of memory", AERIE_CAUSE_HOST_MEMORY);
        return AERIE_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        tell(message, error.what(), AERIE_CAUSE_OTHER);
        return AERIE_ERROR;
    } catch (...) {
        message.set("an exception of unknown type, perhaps out of a callback", AERIE_CAUSE_OTHER);
        return AERIE_ERROR;
    }
}

}  // namespace aerie::api
