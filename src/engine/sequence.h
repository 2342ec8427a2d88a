// One text and all that goes with it; nothing of a device but page numbers.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "engine/sampling.h"
#include "model/kv_pool.h"

namespace aerie {

class Sequence {
  public:
    // An empty text, with pages of this pool and a state of this drafter, which must outlive it.
    // Throws Error if either has no room for another one.
    Sequence(KvPool& kv, Drafter& drafter, int vocab, int context);
    // A new text in the place of this one. Throws UsageError for values out of range.
    void begin(const AnswerOptions& answer);
    // The text becomes this prompt, for an answer that is like that of a new text; what was
    // computed for tokens that it begins with alike is kept. Returns the positions that need not be
    // run again. The last `put_out` of its tokens are those that an answer consists of so far.
    // Throws UsageError; the text is then as it was.
    int begin(std::span<const int> prompt, const AnswerOptions& answer, size_t put_out = 0);

    // The text goes on with these: a prompt, or what a user says next. Throws UsageError unless
    // all of them are the model's and the context has room for them and an answer.
    void append(std::span<const int> tokens);
    // What was computed for the text is dropped, and computed again when it is needed.
    void forget();
    // Cuts the text to its first tokens. What follows is read and chosen as if it had never been
    // longer.
    void truncate(int length);
    // Another text that begins with the first tokens of this one, and shares what was computed for
    // them.
    Sequence fork(int length) const;

    // A new text that holds these tokens, which are the model's; none of them is computed.
    void restore(std::span<const int> tokens);
    // What is computed of the text, and what the drafter knows of it, to a file and from one that
    // a text of the same tokens wrote. Throw Error.
    void save_computed(SaveSink& to) const;
    void load_computed(SaveSource& from);
    void save_draft(SaveSink& to) const { draft_->save(to); }
    void load_draft(SaveSource& from) { draft_->load(from); }

    // Prompt first. Once it was read, the last one is pending: chosen, but not in the cache.
    std::span<const int> tokens() const { return tokens_; }
    int committed() const { return committed_; }  // positions in the KV cache
    int pending() const { return tokens_.back(); }
    const AnswerOptions& answer() const { return answer_; }
    const Sampling& sampling() const { return answer_.sampling; }
    TextRule rule() const;  // how its tokens are chosen; refers to this text
    SeenTokens& seen() { return seen_; }
    KvPages& pages() { return pages_; }
    DraftState& draft() { return *draft_; }

    // For who runs the passes: the next `count` positions are in the cache; these tokens were
    // chosen.
    void commit(int count) { committed_ += count; }
    void put_out(std::span<const int> tokens) { add(tokens, true); }

  private:
    Sequence(const Sequence& other, int length);
    void add(std::span<const int> tokens, bool are_output);
    void check_prompt(std::span<const int> tokens, size_t before) const;
    void recount();
    void let_draft_follow();
    // Of the committed positions, those that a text cut to this length need not run again.
    int kept(int length) const { return std::clamp(length - 1, 0, committed_); }

    int vocab_, context_;
    AnswerOptions answer_;
    std::vector<int> tokens_;
    std::vector<bool> is_output_;  // of each token; else it was given
    SeenTokens seen_;
    KvPages pages_;
    int committed_ = 0;
    std::unique_ptr<DraftState> draft_;
};

}  // namespace aerie
