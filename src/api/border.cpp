#include "api/border.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie::api {

void Message::set(std::string_view text) noexcept {
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
void tell(Message& message, const char* what) noexcept {
    try {
        message.set(printable(what));
    } catch (...) {
        message.set("out of memory");
    }
}

}  // namespace

aerie_status caught(Message& message) noexcept {
    try {
        throw;
    } catch (const Cancelled&) {
        message.set("cancelled");
        return AERIE_CANCELLED;
    } catch (const UsageError& error) {
        tell(message, error.what());
        return AERIE_USAGE;
    } catch (const std::bad_alloc&) {
        message.set("out of memory");
        return AERIE_OUT_OF_MEMORY;
    } catch (const std::length_error&) {
        message.set("out of memory");
        return AERIE_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        tell(message, error.what());
        return AERIE_ERROR;
    } catch (...) {
        message.set("an exception of unknown type, perhaps out of a callback");
        return AERIE_ERROR;
    }
}

}  // namespace aerie::api
