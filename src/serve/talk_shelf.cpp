#include "serve/talk_shelf.h"

#include <algorithm>
#include <new>

#include "core/error.h"

namespace aerie {

namespace {

size_t common_ids(std::span<const int> a, std::span<const int> b) {
    return size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

// What others may see of a talk that is in use: the prompt that it had when it was taken.
struct TalkShelf::Entry {
    FairMutex steps;  // who touches the talk; a fork waits for one step at most
    std::unique_ptr<Talk> talk;
    // Of the shelf's mutex:
    std::vector<int> ids;
    bool in_use = true;
    uint64_t used = 0;
};

TalkShelf::TalkShelf(std::shared_ptr<SharedModel> model)
    : model_(std::move(model)), capacity_(size_t(std::max(1, model_->options().sequences))) {}

TalkShelf::Lease::~Lease() {
    if (entry_) shelf_->put_back(entry_);
}

void TalkShelf::Lease::begin(const Request& request) {
    const std::lock_guard lock(entry_->steps);
    entry_->talk->begin(request);
}

bool TalkShelf::Lease::step() {
    const std::lock_guard lock(entry_->steps);
    return entry_->talk->step();
}

const Generation& TalkShelf::Lease::answer() const {
    return entry_->talk->answer();
}

std::span<const int> TalkShelf::Lease::ids() const {
    return entry_->talk->ids();
}

std::shared_ptr<TalkShelf::Entry> TalkShelf::oldest_idle_but(const Entry* other) const {
    std::shared_ptr<Entry> oldest;
    for (const auto& entry : entries_)
        if (!entry->in_use && entry.get() != other && (!oldest || entry->used < oldest->used))
            oldest = entry;
    return oldest;
}

// What has most of the prompt; of equal ones one that is idle, and need not be waited for.
std::shared_ptr<TalkShelf::Entry> TalkShelf::most_alike(std::span<const int> prompt,
                                                        size_t& alike) const {
    std::shared_ptr<Entry> best;
    alike = 0;
    for (const auto& entry : entries_) {
        const size_t common = common_ids(entry->ids, prompt);
        if (common < alike || (common == alike && best && !best->in_use)) continue;
        alike = common;
        best = entry;
    }
    return best;
}

// What is chosen is taken out of the list, or marked as used; called under the mutex.
TalkShelf::Choice TalkShelf::choose(std::span<const int> prompt) {
    size_t alike = 0;
    Choice choice;
    choice.source = most_alike(prompt, alike);
    const bool full = entries_.size() + making_ >= capacity_;
    if (choice.source && !choice.source->in_use) {
        const bool is_continued =
            alike >= kWorthTaking && choice.source->ids.size() <= alike + kEnd;
        const bool is_the_last = full && !oldest_idle_but(choice.source.get());
        choice.as_it_is = is_continued || is_the_last;
    }
    if (choice.as_it_is) {
        choice.source->in_use = true;
        choice.source->ids.assign(prompt.begin(), prompt.end());
        return choice;
    }
    if (alike < kWorthForking) choice.source = nullptr;
    if (full) {
        choice.dropped = oldest_idle_but(choice.source.get());
        if (!choice.dropped) throw Error("no talk is free");
        entries_.remove(choice.dropped);
    }
    ++making_;
    return choice;
}

// Null if it has not enough of the prompt any more.
std::unique_ptr<Talk> TalkShelf::fork_of(Entry& source, std::span<const int> prompt) {
    const std::lock_guard lock(source.steps);
    if (!source.talk) return nullptr;
    const size_t alike = common_ids(source.talk->ids(), prompt);
    return alike < kWorthForking ? nullptr : source.talk->fork(int(alike));
}

TalkShelf::Lease TalkShelf::take(std::span<const int> prompt) {
    Choice choice;
    {
        const std::lock_guard lock(mutex_);
        choice = choose(prompt);
    }
    if (choice.as_it_is) return {*this, choice.source};
    const auto entry = std::make_shared<Entry>();
    try {
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

// Called by a destructor: a talk whose ids find no memory is not kept.
void TalkShelf::put_back(const std::shared_ptr<Entry>& entry) {
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

std::vector<int> TalkShelf::joined(std::span<const int> prompt) {
    std::vector<std::vector<int>> held;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& entry : entries_)
            if (!entry->in_use) held.push_back(entry->ids);
    }
    CommonText best;
    const std::vector<int>* same = nullptr;
    for (const auto& ids : held) {
        const CommonText common = common_text(model_->tokenizer().bpe(), ids, prompt);
        if (common.second <= best.second) continue;
        best = common;
        same = &ids;
    }
    if (!same) return {prompt.begin(), prompt.end()};
    std::vector<int> all(same->begin(), same->begin() + ptrdiff_t(best.first));
    all.insert(all.end(), prompt.begin() + ptrdiff_t(best.second), prompt.end());
    return all;
}

int TalkShelf::idle() const {
    const std::lock_guard lock(mutex_);
    return int(std::count_if(entries_.begin(), entries_.end(),
                             [](const auto& entry) { return !entry->in_use; }));
}

int TalkShelf::in_use() const {
    const std::lock_guard lock(mutex_);
    return int(std::count_if(entries_.begin(), entries_.end(),
                             [](const auto& entry) { return entry->in_use; })) +
           int(making_);
}

}  // namespace aerie
