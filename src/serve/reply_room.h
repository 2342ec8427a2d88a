// Limits the memory of replies that are sent as a whole: it is in use until their clients have read
// them, and a client may take its time.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "engine/generation.h"
#include "serve/requests/request.h"

namespace aerie {

// About how many bytes a whole reply takes at most; each of the requests is made asked.choices
// times, in a context of so many tokens.
int64_t reply_bytes(const CompletionRequest& asked, std::span<const Request> requests, int context);

class ReplyRoom {
  public:
    static constexpr int64_t kAll = 128 << 20, kSmall = 1 << 20;  // small ones are not counted

    // A reply's part of the room, given back when the share is destroyed.
    class Share {
      public:
        Share() = default;
        Share(ReplyRoom& room, int64_t bytes) : room_(&room), bytes_(bytes) {}
        Share(Share&& other) noexcept { *this = std::move(other); }
        Share& operator=(Share&& other) noexcept {
            give_back();
            room_ = std::exchange(other.room_, nullptr);
            bytes_ = other.bytes_;
            return *this;
        }
        ~Share() { give_back(); }

      private:
        void give_back() {
            if (room_) room_->taken_ -= bytes_;
            room_ = nullptr;
        }
        ReplyRoom* room_ = nullptr;
        int64_t bytes_ = 0;
    };

    // Throws Problem if `bytes` exceeds the room of all replies together.
    static void check(int64_t bytes);
    // Throws Problem while other replies have too much of the room.
    Share take(int64_t bytes);

  private:
    std::atomic<int64_t> taken_ = 0;
};

}  // namespace aerie
