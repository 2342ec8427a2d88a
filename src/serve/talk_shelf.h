// Conversations that are kept for requests to come: each gets the one that has most of its prompt.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/fair_mutex.h"
#include "model/kv_pool.h"
#include "talk/talk.h"
#include "text/common_text.h"

namespace aerie {

class TalkShelf {
    struct Entry;

  public:
    // As many talks as the model has room for: LoadOptions::sequences.
    explicit TalkShelf(std::shared_ptr<SharedModel> model);
    TalkShelf(const TalkShelf&) = delete;  // its leases refer to it
    TalkShelf& operator=(const TalkShelf&) = delete;

    // A talk in use. It goes back when the lease ends.
    class Lease {
      public:
        Lease(TalkShelf& shelf, std::shared_ptr<Entry> entry)
            : shelf_(&shelf), entry_(std::move(entry)) {}
        Lease(Lease&& other) noexcept = default;
        Lease& operator=(Lease&&) = delete;
        ~Lease();

        void begin(const Request& request);
        bool step();
        const Generation& answer() const;
        std::span<const int> ids() const;

      private:
        TalkShelf* shelf_;
        std::shared_ptr<Entry> entry_;
    };

    // For this prompt: the talk that it continues, if nobody uses that; else a fork of what begins
    // alike, where that has a page to share; else a new one. The least recently used talk makes
    // room, or is cut and taken. There must be less leases than talks. Throws Error.
    Lease take(std::span<const int> prompt);
    // The prompt in the ids of the idle talk that says most of it already; see Talk::joined.
    std::vector<int> joined(std::span<const int> prompt);

    int idle() const;
    int in_use() const;

    // Tokens alike from which a talk is taken as it is; and from which a fork has something, for
    // forks share whole pages but for the newest position.
    static constexpr size_t kWorthTaking = 16, kWorthForking = kPageSize + 1;
    // A talk may lose so many at its end and be the same conversation: what a template writes
    // after an answer, tokens that are cut in another way.
    static constexpr size_t kEnd = 8;

  private:
    using Entries = std::list<std::shared_ptr<Entry>>;
    struct Choice {
        std::shared_ptr<Entry> source;   // may be null
        bool as_it_is = false;           // else forked
        std::shared_ptr<Entry> dropped;  // may be null
    };
    std::shared_ptr<Entry> most_alike(std::span<const int> prompt, size_t& alike) const;
    Choice choose(std::span<const int> prompt);
    std::shared_ptr<Entry> oldest_idle_but(const Entry* other) const;
    std::unique_ptr<Talk> fork_of(Entry& source, std::span<const int> prompt);
    void put_back(const std::shared_ptr<Entry>& entry);

    const std::shared_ptr<SharedModel> model_;
    const size_t capacity_;
    mutable std::mutex mutex_;
    Entries entries_;
    size_t making_ = 0;  // talks that are not in the list yet
    uint64_t uses_ = 0;
};

}  // namespace aerie
