// One round of answers: which of them take part, what the passes run for them, and what they get.
#include <algorithm>

#include "core/error.h"
#include "engine/generation.h"

namespace aerie {

class Round {
  public:
    explicit Round(std::span<Generation* const> together);
    void run();

  private:
    using Generations = FixedVector<Generation*, kMaxTogether>;

    void admit();
    bool find_room(size_t i);
    bool preempt_youngest(size_t i);
    int missing_pages(const Generation& generation) const;
    static bool is_cancelled(Generation& generation);
    bool may_prefill(Generation& generation);
    void add_piece(Generation& generation);
    void finish(Generation& generation, bool was_prefilling);

    Batch& batch_;
    const double start_ = steady_seconds();
    const PhaseSeconds before_;
    Generations all_;                                 // the oldest first
    FixedVector<Sequence*, kMaxTogether> sequences_;  // keep their pages
    int reserved_ = 0;  // free pages that older answers are going to take
    Generations decoding_, prefilling_;
    FixedVector<Cycle*, kMaxTogether> cycles_;
    FixedVector<PromptPiece, kMaxTogether> pieces_;
};

Round::Round(std::span<Generation* const> together)
    : batch_(together.front()->batch_), before_(batch_.seconds()) {
    for (Generation* generation : together) {
        if (generation->has_ended_) continue;
        const Sequence& sequence = *generation->cycle_.sequence;
        // Between rounds free_pages() may have taken the sequence's pages; then its text is read
        // again.
        if (sequence.committed() + 1 < int(sequence.tokens().size()))
            generation->has_begun_ = false;
        if (generation->has_begun_ || generation->request_.max_tokens != 0) {
            if (generation->has_begun_ || !is_cancelled(*generation)) all_.push_back(generation);
        } else {
            generation->has_ended_ = true;
        }
    }
    std::sort(all_.begin(), all_.end(),
              [](const Generation* a, const Generation* b) { return a->number_ < b->number_; });
    for (Generation* generation : all_) sequences_.push_back(generation->cycle_.sequence);
    admit();
}

// Lets answers take part, the oldest first, as long as the KV cache has pages for their texts.
void Round::admit() {
    bool has_room = true;
    for (size_t i = 0; i < all_.size(); ++i) {
        Generation& generation = *all_[i];
        has_room = has_room && find_room(i);
        generation.is_waiting_ = !has_room;
        if (!has_room) continue;
        reserved_ += missing_pages(generation);
        (generation.has_begun_ ? decoding_ : prefilling_).push_back(&generation);
    }
}

int Round::missing_pages(const Generation& generation) const {
    Sequence& sequence = *generation.cycle_.sequence;
    const int slots = int(sequence.tokens().size()) - 1 + batch_.reach().nodes;
    return sequence.pages().missing(std::min(slots, sequence.pages().most_slots()));
}

// Frees pages until the i-th answer has as many as it needs: those of texts that nobody goes on
// with, then those of younger answers. The oldest answer gets pages in any case. An answer that
// holds no page yet leaves one to each older answer: otherwise the older ones would soon take its
// pages.
bool Round::find_room(size_t i) {
    const Generation& generation = *all_[i];
    const bool is_new = generation.cycle_.sequence->pages().slots() == 0;
    const int wanted = reserved_ + missing_pages(generation) + (is_new ? int(i) : 0);
    while (batch_.kv().free_pages() < wanted) {
        if (batch_.drop_unused(sequences_, false) || preempt_youngest(i)) continue;
        if (i > 0) return false;
        if (batch_.drop_unused(sequences_, true)) continue;
        throw Error("the KV cache has no room for the oldest text", Cause::no_room);
    }
    return true;
}

// Preemption: the youngest answer behind the i-th that holds pages gives them back; it is computed
// again later.
bool Round::preempt_youngest(size_t i) {
    for (size_t j = all_.size(); --j > i;) {
        Sequence& sequence = *all_[j]->cycle_.sequence;
        if (sequence.pages().slots() == 0) continue;
        sequence.forget();
        all_[j]->has_begun_ = false;
        return true;
    }
    return false;
}

void Round::run() {
    for (Generation* generation : decoding_) cycles_.push_back(&generation->cycle_);
    batch_.propose(cycles_);
    // The pieces have the rows that the trees of `decoding_` leave.
    const size_t decoding_count = cycles_.size();
    for (Generation* generation : prefilling_) add_piece(*generation);
    std::span<Cycle* const> remaining = cycles_;
    batch_.propose(remaining.subspan(decoding_count));
    for (std::span<const PromptPiece> pieces = pieces_; !remaining.empty() || !pieces.empty();) {
        const size_t count = batch_.cycles_of_pass(remaining);
        run_pass(batch_, remaining.first(count), pieces);
        remaining = remaining.subspan(count);
        pieces = {};
    }
    for (Generation* generation : decoding_) finish(*generation, false);
    for (Generation* generation : prefilling_) finish(*generation, true);
}

// Whether the answer's caller wants no more of it; then it has ended. An exception of its callbacks
// ends this answer alone.
bool Round::is_cancelled(Generation& generation) {
    try {
        if (generation.is_cancelled()) generation.end(FinishReason::cancelled);
    } catch (...) {
        generation.cycle_.error = std::current_exception();
        generation.has_ended_ = true;
    }
    return generation.has_ended_;
}

// Reports how far the prompt is prefilled. Returns false if the answer has ended, by its caller's
// wish or error.
bool Round::may_prefill(Generation& generation) {
    const Sequence& sequence = *generation.cycle_.sequence;
    try {
        if (generation.request_.on_read)
            generation.request_.on_read(sequence.committed(), int(sequence.tokens().size()));
    } catch (...) {
        generation.cycle_.error = std::current_exception();
        generation.has_ended_ = true;
        return false;
    }
    return !is_cancelled(generation);
}

// As much of a prompt as the pass has room for; if that is all, its first cycle, too.
void Round::add_piece(Generation& generation) {
    Sequence& sequence = *generation.cycle_.sequence;
    int room = batch_.piece_rows(cycles_);
    for (const PromptPiece& piece : pieces_) room -= piece.count;
    const int all = int(sequence.tokens().size()), rest = all - sequence.committed();
    if (room <= 0) return;
    if (!may_prefill(generation)) return;
    const bool is_last = rest <= room;
    if (const int count = is_last ? rest - 1 : room; count > 0)
        pieces_.push_back({&sequence, count});
    if (!is_last) return;
    generation.cycle_.is_first = generation.has_begun_ = true;
    cycles_.push_back(&generation.cycle_);
}

// Gives an answer its part of the round. An exception of its callbacks ends this answer alone.
void Round::finish(Generation& generation, bool was_prefilling) {
    if (generation.cycle_.error) {
        generation.has_ended_ = true;
    } else if (generation.has_begun_) {
        try {
            generation.take(was_prefilling);
        } catch (...) {
            generation.cycle_.error = std::current_exception();
            generation.has_ended_ = true;
        }
    }
    generation.count_time(start_, before_, was_prefilling);
}

void step(std::span<Generation* const> together) {
    if (!together.empty()) Round(together).run();
}

}  // namespace aerie
