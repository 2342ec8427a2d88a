#include "serve/prompt_cache.h"

#include <algorithm>
#include <new>

#include "core/error.h"

namespace aerie {

namespace {

size_t common_ids(std::span<const int> a, std::span<const int> b) {
    return size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// Whether a fork saves anything worth having: much of the prompt, or all of it, as in a retry.
bool is_worth_forking(size_t alike, std::span<const int> prompt) {
    return alike >= PromptCache::kWorthSharing || alike == prompt.size();
}

}  // namespace

// A talk of the cache. While it is in use, other threads see in `ids` the prompt that it was taken
// for.
struct PromptCache::Entry {
    FairMutex steps;  // held by users of `talk`; a fork waits for one step at most
    std::unique_ptr<Talk> talk;
    std::string key;
    // Guarded by the mutex of the cache:
    std::vector<int> ids;
    bool in_use = true;
    uint64_t used = 0;
};

PromptCache::PromptCache(std::shared_ptr<SharedModel> model)
    : model_(std::move(model)), capacity_(size_t(std::max(1, model_->options().sequences))) {}

PromptCache::Lease::~Lease() {
    if (entry_) cache_->put_back(entry_);
}

void PromptCache::Lease::begin(const Request& request) {
    const std::lock_guard lock(entry_->steps);
    entry_->talk->begin(request);
}

bool PromptCache::Lease::step() {
    const std::lock_guard lock(entry_->steps);
    return entry_->talk->step();
}

GenerationResult PromptCache::Lease::leave() {
    const std::lock_guard lock(entry_->steps);
    return entry_->talk->leave();
}

const Generation& PromptCache::Lease::answer() const {
    return entry_->talk->answer();
}

std::span<const int> PromptCache::Lease::ids() const {
    return entry_->talk->ids();
}

std::shared_ptr<PromptCache::Entry> PromptCache::oldest_idle_but(const Entry* other) const {
    std::shared_ptr<Entry> oldest;
    for (const auto& entry : entries_)
        if (!entry->in_use && entry.get() != other && (!oldest || entry->used < oldest->used))
            oldest = entry;
    return oldest;
}

// The entry with the longest common prefix, whose length becomes `alike`. Among equal ones an idle
// one is preferred, since it need not be waited for.
std::shared_ptr<PromptCache::Entry> PromptCache::most_alike(std::span<const int> prompt,
                                                            const std::string& key,
                                                            size_t& alike) const {
    std::shared_ptr<Entry> best;
    alike = 0;
    for (const auto& entry : entries_) {
        if (entry->key != key) continue;
        const size_t common = common_ids(entry->ids, prompt);
        if (common < alike || (common == alike && best && !best->in_use)) continue;
        alike = common;
        best = entry;
    }
    return best;
}

// Decides how a prompt gets its talk. The source is marked as used if it is taken as it is; the
// dropped entry is taken out of the list. Called under the mutex.
PromptCache::Choice PromptCache::choose(std::span<const int> prompt, const std::string& key) {
    size_t alike = 0;
    Choice choice;
    choice.source = most_alike(prompt, key, alike);
    const bool full = entries_.size() + making_ >= capacity_;
    if (choice.source && !choice.source->in_use) {
        const bool is_continued =
            alike >= kWorthSharing && choice.source->ids.size() <= alike + kEnd;
        const bool is_the_last = full && !oldest_idle_but(choice.source.get());
        choice.as_it_is = is_continued || is_the_last;
    }
    if (choice.as_it_is) {
        choice.source->ids.assign(prompt.begin(), prompt.end());  // first: it may find no memory
        choice.source->in_use = true;
        return choice;
    }
    if (!is_worth_forking(alike, prompt)) choice.source = nullptr;
    if (full) {
        choice.dropped = oldest_idle_but(choice.source.get());
        if (!choice.dropped) throw Error("no talk is free");
        entries_.remove(choice.dropped);
    }
    ++making_;
    return choice;
}

// Null if the source does not share enough of the prompt any more.
std::unique_ptr<Talk> PromptCache::fork_of(Entry& source, std::span<const int> prompt) {
    const std::lock_guard lock(source.steps);
    if (!source.talk) return nullptr;
    const size_t alike = common_ids(source.talk->ids(), prompt);
    return is_worth_forking(alike, prompt) ? source.talk->fork(int(alike)) : nullptr;
}

PromptCache::Lease PromptCache::take(std::span<const int> prompt, const std::string& key) {
    Choice choice;
    {
        const std::lock_guard lock(mutex_);
        choice = choose(prompt, key);
    }
    if (choice.as_it_is) return {*this, choice.source};
    std::shared_ptr<Entry> entry;
    try {
        entry = std::make_shared<Entry>();
        entry->key = key;
        if (choice.dropped) {
            const std::lock_guard lock(choice.dropped->steps);
            choice.dropped->talk.reset();
        }
        if (choice.source) entry->talk = fork_of(*choice.source, prompt);
        if (!entry->talk) entry->talk = std::make_unique<Talk>(model_);
        entry->ids.assign(prompt.begin(), prompt.end());
    } catch (...) {
        const std::lock_guard lock(mutex_);
        --making_;
        throw;
    }
    const std::lock_guard lock(mutex_);
    --making_;
    entries_.push_back(entry);
    return {*this, entry};
}

// Called by a destructor: a talk is dropped if there is no memory for its ids.
void PromptCache::put_back(const std::shared_ptr<Entry>& entry) {
    const std::lock_guard lock(mutex_);
    try {
        entry->ids.assign(entry->talk->ids().begin(), entry->talk->ids().end());
    } catch (const std::bad_alloc&) {
        entries_.remove(entry);
        return;
    }
    entry->in_use = false;
    entry->used = ++uses_;
}

int PromptCache::idle() const {
    const std::lock_guard lock(mutex_);
    return int(std::count_if(entries_.begin(), entries_.end(),
                             [](const auto& entry) { return !entry->in_use; }));
}

int PromptCache::in_use() const {
    const std::lock_guard lock(mutex_);
    return int(std::count_if(entries_.begin(), entries_.end(),
                             [](const auto& entry) { return entry->in_use; })) +
           int(making_);
}

}  // namespace aerie
