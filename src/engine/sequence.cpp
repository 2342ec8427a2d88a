// A text that is cut keeps what was computed before the cut but the newest row: the target runs it
// again, for its choice and its features.
#include "engine/sequence.h"

#include <algorithm>

#include "core/error.h"
#include "model/target.h"

namespace aerie {

Sequence::Sequence(KvPool& kv, Drafter& drafter, int vocab, int context)
    : vocab_(vocab), context_(context), pages_(kv.begin()), draft_(drafter.begin()) {
    // A cycle at the very end of the context commits a whole path beyond it.
    tokens_.reserve(size_t(context + kMaxDepth + 2));
    is_output_.reserve(tokens_.capacity());
}

void Sequence::begin(const Sampling& sampling, bool with_logprobs) {
    check_sampling(sampling);
    sampling_ = sampling;
    with_logprobs_ = with_logprobs;
    tokens_.clear();
    is_output_.clear();
    committed_ = 0;
    pages_.truncate(0);
    draft_->truncate(0);
    seen_.reset(vocab_);
}

void Sequence::append(std::span<const int> tokens) {
    if (tokens.empty()) throw UsageError("the prompt is empty");
    if (tokens_.size() + tokens.size() >= size_t(context_))
        throw UsageError("the prompt has " + std::to_string(tokens_.size() + tokens.size()) +
                         " tokens; a context of " + std::to_string(context_) +
                         " has no room for it and an answer");
    check_tokens(tokens, vocab_);
    add(tokens, false);
}

void Sequence::add(std::span<const int> tokens, bool are_output) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    is_output_.insert(is_output_.end(), tokens.size(), are_output);
    seen_.add(tokens, are_output);
}

TextRule Sequence::rule() const {
    TextRule rule{{sampling_.filters, sampling_.penalties}};
    if (sampling_.penalties.any()) rule.seen = seen_.words();
    return rule;
}

void Sequence::truncate(int length) {
    draft_->truncate(length);
    committed_ = std::min(pages_.truncate(kept(length)), draft_->positions());
    tokens_.resize(size_t(length));
    is_output_.resize(size_t(length));
    recount();
}

Sequence Sequence::fork(int length) const {
    return Sequence(*this, length);
}

Sequence::Sequence(const Sequence& other, int length)
    : vocab_(other.vocab_),
      context_(other.context_),
      sampling_(other.sampling_),
      with_logprobs_(other.with_logprobs_),
      pages_(other.pages_.fork(other.kept(length))),
      draft_(other.draft_->fork(length)) {
    tokens_.reserve(other.tokens_.capacity());
    tokens_.assign(other.tokens_.begin(), other.tokens_.begin() + length);
    is_output_.reserve(tokens_.capacity());
    is_output_.assign(other.is_output_.begin(), other.is_output_.begin() + length);
    committed_ = std::min(pages_.slots(), draft_->positions());
    recount();
}

// What the tokens that are there say.
void Sequence::recount() {
    seen_.reset(vocab_);
    for (size_t i = 0; i < tokens_.size(); ++i) seen_.add({&tokens_[i], 1}, is_output_[i]);
}

}  // namespace aerie
