// Cutting a sequence keeps everything computed before the cut except the newest row. The target
// runs that row again for its choice and features.
#include "engine/sequence.h"

#include <algorithm>

#include "core/error.h"
#include "model/target.h"

namespace aerie {

Sequence::Sequence(KvPool& kv, Drafter& drafter, int vocab, int context)
    : vocab_(vocab), context_(context), pages_(kv.begin()), draft_(drafter.begin()) {
    // A cycle at the very end of the context may commit a whole path beyond it.
    tokens_.reserve(size_t(context + kMaxDepth + 2));
    is_output_.reserve(tokens_.capacity());
}

void Sequence::begin(const AnswerOptions& answer) {
    check_sampling(answer.sampling);
    answer_ = answer;
    tokens_.clear();
    is_output_.clear();
    seen_.reset(vocab_);
    forget();
}

void Sequence::forget() {
    committed_ = 0;
    pages_.truncate(0);
    draft_->truncate(0);
}

int Sequence::begin(std::span<const int> prompt, const AnswerOptions& answer, size_t put_out) {
    check_sampling(answer.sampling);
    check_prompt(prompt, 0);
    answer_ = answer;
    const auto [end, ignored] =
        std::mismatch(tokens_.begin(), tokens_.end(), prompt.begin(), prompt.end());
    const int alike = int(end - tokens_.begin());
    // Earlier output is part of the prompt now, except for this answer's own.
    const size_t given = prompt.size() - put_out;
    for (size_t i = 0; i < is_output_.size(); ++i) is_output_[i] = i >= given;
    if (alike < int(tokens_.size())) {
        truncate(alike);
    } else {
        recount();
        let_draft_follow();
    }
    const size_t first_output = std::max(size_t(alike), given);
    add(prompt.subspan(size_t(alike), first_output - size_t(alike)), false);
    add(prompt.subspan(first_output), true);
    return std::min(committed_, int(prompt.size()) - 1);
}

void Sequence::append(std::span<const int> tokens) {
    check_prompt(tokens, tokens_.size());
    add(tokens, false);
}

// `before` is the number of tokens in front of these.
void Sequence::check_prompt(std::span<const int> tokens, size_t before) const {
    if (tokens.empty()) throw UsageError("the prompt is empty");
    if (before + tokens.size() >= size_t(context_))
        throw UsageError("the prompt has " + std::to_string(before + tokens.size()) +
                             " tokens; a context of " + std::to_string(context_) +
                             " has no room for it and an answer",
                         Cause::too_long);
    check_tokens(tokens, vocab_);
}

void Sequence::add(std::span<const int> tokens, bool are_output) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    is_output_.insert(is_output_.end(), tokens.size(), are_output);
    seen_.add(tokens, are_output);
}

TextRule Sequence::rule() const {
    TextRule rule{{sampling().filters, sampling().penalties}};
    if (sampling().penalties.any()) rule.seen = seen_.words();
    return rule;
}

void Sequence::truncate(int length) {
    draft_->truncate(length);
    committed_ = pages_.truncate(reusable(length));
    let_draft_follow();
    tokens_.resize(size_t(length));
    is_output_.resize(size_t(length));
    recount();
}

// The drafter needs the features of positions that it has not observed, so these are run again.
void Sequence::let_draft_follow() {
    if (answer_.drafts) committed_ = std::min(committed_, draft_->positions());
}

Sequence Sequence::fork(int length) const {
    return Sequence(*this, length);
}

Sequence::Sequence(const Sequence& other, int length)
    : vocab_(other.vocab_),
      context_(other.context_),
      answer_(other.answer_),
      pages_(other.pages_.fork(other.reusable(length))),
      draft_(other.draft_->fork(length)) {
    tokens_.reserve(other.tokens_.capacity());
    tokens_.assign(other.tokens_.begin(), other.tokens_.begin() + length);
    is_output_.reserve(tokens_.capacity());
    is_output_.assign(other.is_output_.begin(), other.is_output_.begin() + length);
    committed_ = other.reusable(length);
    let_draft_follow();
    recount();
}

void Sequence::restore(std::span<const int> tokens) {
    begin({});
    add(tokens, false);
}

void Sequence::save_computed(SaveSink& to) const {
    to.value(int32_t(committed_));
    pages_.save(to, committed_);
}

void Sequence::load_computed(SaveSource& from) {
    const int most = std::max(0, int(tokens_.size()) - 1);
    committed_ = 0;
    const int count = from.value<int32_t>(0, most, "the number of computed positions");
    pages_.load(from, count);
    committed_ = count;
}

// Counts the present tokens anew.
void Sequence::recount() {
    seen_.reset(vocab_);
    for (size_t i = 0; i < tokens_.size(); ++i) seen_.add({&tokens_[i], 1}, is_output_[i]);
}

}  // namespace aerie
