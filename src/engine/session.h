// One sequence at a time: a batch of one, with a KV cache of its own.
#pragma once

#include <utility>

#include "engine/batch.h"

namespace aerie {

class Session {
  public:
    Session(Backend& be, Target& target, Drafter& drafter, const BatchLimits& limits)
        : kv_(be, kv_shape(target.config(), limits, drafter.reach())),
          batch_(be, target, kv_, drafter, limits),
          sequence_(kv_, drafter, target.config().vocab, limits.context) {
        cycle_.sequence = &sequence_;
    }
    Session(const Session&) = delete;  // its parts refer to each other
    Session& operator=(const Session&) = delete;

    // Begins a new text and forgets the former one.
    void begin(const AnswerOptions& answer) {
        sequence_.begin(answer);
        batch_.reset_seconds();
    }
    // Appends tokens, runs the target over them and chooses the pending token; see Batch.
    ChosenTokens prefill(std::span<const int> tokens, const std::function<bool()>& cancelled = {}) {
        sequence_.append(tokens);
        return batch_.prefill(sequence_, cancelled);
    }
    // The steps of a cycle.
    const TokenTree& propose() {
        batch_.propose({&one_, 1});
        check();
        return cycle_.tree;
    }
    // The token that the target chooses after each node of any tree.
    const NodeList& verify(const TokenTree& tree) {
        if (!(tree == cycle_.tree)) cycle_.drawn.clear();
        cycle_.tree = tree;
        batch_.verify({&one_, 1});
        check();
        return cycle_.choices;
    }
    const ChosenTokens& commit(const TokenTree& tree, const Path& path) {
        cycle_.tree = tree;
        cycle_.path = path;
        batch_.commit({&one_, 1});
        check();
        return cycle_.output;
    }

    int context() const { return batch_.limits().context; }
    int committed() const { return sequence_.committed(); }  // positions in the KV cache
    const PhaseSeconds& seconds() const { return batch_.seconds(); }
    KvPool& kv() { return kv_; }
    Batch& batch() { return batch_; }
    Sequence& sequence() { return sequence_; }
    Tensor logits() const { return batch_.logits(); }
    Tensor features() const { return batch_.features(); }

  private:
    void check() {
        if (cycle_.error) std::rethrow_exception(std::exchange(cycle_.error, nullptr));
    }

    KvPool kv_;
    Batch batch_;
    Sequence sequence_;
    Cycle cycle_;
    Cycle* const one_ = &cycle_;
};

}  // namespace aerie
