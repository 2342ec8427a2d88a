// The prompt cache: idle conversations that are kept for later requests. Each request gets the one
// that shares most of its prompt.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/fair_mutex.h"
#include "model/kv_pool.h"
#include "talk/talk.h"

namespace aerie {

class PromptCache {
    struct Entry;

  public:
    // Holds as many talks as the model has room for: LoadOptions::sequences.
    explicit PromptCache(std::shared_ptr<SharedModel> model);
    PromptCache(const PromptCache&) = delete;  // its leases refer to it
    PromptCache& operator=(const PromptCache&) = delete;

    // A talk in use. It goes back to the cache when the lease is destroyed.
    class Lease {
      public:
        Lease(PromptCache& cache, std::shared_ptr<Entry> entry)
            : cache_(&cache), entry_(std::move(entry)) {}
        Lease(Lease&& other) noexcept = default;
        Lease& operator=(Lease&&) = delete;
        ~Lease();

        void begin(const Request& request);
        bool step();
        GenerationResult leave();  // see Talk::leave
        const Generation& answer() const;
        std::span<const int> ids() const;

      private:
        PromptCache* cache_;
        std::shared_ptr<Entry> entry_;
    };

    // Returns a talk for this prompt: the talk that the prompt continues, if that is idle; else a
    // fork of the talk with the longest common prefix, if that is long enough; else a new talk.
    // Only talks with this key are considered. If the cache is full, the least recently used idle
    // talk makes room, whatever its key; if that would be the match itself, the match is cut and
    // taken. There must be fewer leases than talks. Throws Error.
    Lease take(std::span<const int> prompt, const std::string& key = {});

    int idle() const;
    int in_use() const;

    // The fewest common tokens with which a talk is taken as it is or forked, unless they are all
    // of the prompt.
    static constexpr size_t kWorthSharing = 16;
    // A talk counts as continued even if up to this many of its last tokens differ: the text that a
    // template writes after an answer, or tokens that are cut in another way.
    static constexpr size_t kEnd = 8;

  private:
    using Entries = std::list<std::shared_ptr<Entry>>;
    struct Choice {
        std::shared_ptr<Entry> source;   // may be null
        bool as_it_is = false;           // else it is forked
        std::shared_ptr<Entry> dropped;  // may be null
    };
    std::shared_ptr<Entry> most_alike(std::span<const int> prompt, const std::string& key,
                                      size_t& alike) const;
    Choice choose(std::span<const int> prompt, const std::string& key);
    std::shared_ptr<Entry> oldest_idle_but(const Entry* other) const;
    std::unique_ptr<Talk> fork_of(Entry& source, std::span<const int> prompt);
    void put_back(const std::shared_ptr<Entry>& entry);

    const std::shared_ptr<SharedModel> model_;
    const size_t capacity_;
    mutable std::mutex mutex_;
    Entries entries_;
    size_t making_ = 0;  // talks that are being made and not in the list yet
    uint64_t uses_ = 0;
};

}  // namespace aerie
