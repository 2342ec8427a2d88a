// One sequence with all its state. It holds no device memory except pages of a pool.
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
    // An empty sequence, with pages of this pool and a state of this drafter, which must outlive
    // it. Throws Error if either has no room for another one.
    Sequence(KvPool& kv, Drafter& drafter, int vocab, int context);
    // Begins a new text in its place. Throws UsageError for sampling values out of range.
    void begin(const AnswerOptions& answer);
    // Makes this prompt the text, for an answer like that of a new text. Results for a common
    // beginning are kept; returns the number of positions that need not be run again. The last
    // `put_out` tokens of the prompt are output of the present answer. Throws UsageError and leaves
    // the text unchanged.
    int begin(std::span<const int> prompt, const AnswerOptions& answer, size_t put_out = 0);

    // Appends a prompt, or the user's next message. Throws UsageError unless all tokens are the
    // model's and the context has room for them and an answer.
    void append(std::span<const int> tokens);
    // Drops everything that was computed; it is computed again when needed.
    void forget();
    // Cuts the text to its first tokens. The following passes and choices are as if it had never
    // been longer.
    void truncate(int length);
    // Another sequence that begins with the first tokens of this one and shares what was computed
    // for them.
    Sequence fork(int length) const;

    // Replaces the text by these tokens, which must be the model's; nothing is computed for them.
    void restore(std::span<const int> tokens);
    // Save what was computed for the text and what the drafter knows of it, and load it into a
    // sequence with the same tokens. Throw Error.
    void save_computed(SaveSink& to) const;
    void load_computed(SaveSource& from);
    void save_draft(SaveSink& to) const { draft_->save(to); }
    void load_draft(SaveSource& from) { draft_->load(from); }

    // The prompt comes first. After the prefill the last token is pending: chosen, but not in the
    // cache.
    std::span<const int> tokens() const { return tokens_; }
    int committed() const { return committed_; }  // positions in the KV cache
    int pending() const { return tokens_.back(); }
    const AnswerOptions& answer() const { return answer_; }
    const Sampling& sampling() const { return answer_.sampling; }
    TextRule rule() const;  // how its tokens are chosen; refers to this sequence
    SeenTokens& seen() { return seen_; }
    KvPages& pages() { return pages_; }
    DraftState& draft() { return *draft_; }

    // Called by Batch: marks `count` more positions as cached; appends chosen tokens.
    void commit(int count) { committed_ += count; }
    void put_out(std::span<const int> tokens) { add(tokens, true); }

  private:
    Sequence(const Sequence& other, int length);
    void add(std::span<const int> tokens, bool are_output);
    void check_prompt(std::span<const int> tokens, size_t before) const;
    void recount();
    void let_draft_follow();
    // Number of committed positions that stay valid after a cut to this length.
    int reusable(int length) const { return std::clamp(length - 1, 0, committed_); }

    int vocab_, context_;
    AnswerOptions answer_;
    std::vector<int> tokens_;
    std::vector<bool> is_output_;  // for each token: put out by the model, not given
    SeenTokens seen_;
    KvPages pages_;
    int committed_ = 0;
    std::unique_ptr<DraftState> draft_;
};

}  // namespace aerie
