// How a text may go on, judged by what it said before: the tokens that followed earlier occurrences
// of its last tokens, as a tree, with probabilities learned from how often such drafts were right
// in this text so far.
#pragma once

#include <span>

#include "core/saved.h"
#include "draft/ngram/suffix_automaton.h"
#include "draft/trees/estimate.h"
#include "draft/trees/tree.h"

namespace aerie {

// A drafted token. Parents come first in a list, and are at least as likely.
struct Continuation {
    int token = 0;
    int parent = -1;        // index of the parent in the list; -1: the text's end
    float probability = 0;  // probability of the whole path
};
using ContinuationList = FixedVector<Continuation, kMaxNodes - 1>;

// The probability of a drafted token given its parent.
inline float conditional_of(const ContinuationList& list, const Continuation& drafted) {
    return drafted.parent < 0 ? drafted.probability
                              : drafted.probability / list[size_t(drafted.parent)].probability;
}

struct DraftPlan;

// Bytes of host memory that the Continuations of the plan's sequences take when these are full.
size_t continuations_bytes(const DraftPlan& plan);

class Continuations {
  public:
    explicit Continuations(int tokens) : said_(tokens) {}

    // Reads the new part of the text: a prompt, or an answer, from whose tokens it learns how good
    // its drafts are.
    enum class Reads { prompt, answer };
    void follow(std::span<const int> text, Reads what);
    // Cuts the text to its first tokens; 0: another text, and everything learned is dropped.
    void truncate(int tokens);

    // Finds the likeliest tokens to draft, none below `least`: at most `most` of them, at most
    // `deepest` tokens ahead, and at most `widest` that follow the same token.
    void likeliest(int most, int deepest, int widest, double least, ContinuationList& list) const;

    // Copies the statistics that another text has collected.
    void learn_like(const Continuations& other);
    void save(SaveSink& to) const;
    void load(SaveSource& from);  // throws Error; the text must be followed again

  private:
    // A state of the automaton, and how many of the text's last tokens lead to it.
    struct Place {
        int state = SuffixAutomaton::kStart;
        int matched = 0;
    };
    static constexpr int kMaxGuesses = 8;
    struct Proposal {
        int token;
        Place place;
        double share;  // probability that this token follows
    };
    using Guesses = FixedVector<Proposal, kMaxGuesses>;
    // Kinds of matches, by their length.
    static constexpr int kKinds = 8;
    static int kind_of(int matched);

    Place end() const;
    Guesses guesses(Place place) const;
    void add_guesses(Place place, double left, Guesses& list) const;
    void learn(int token);

    SuffixAutomaton said_;
    Estimate first_[kKinds];  // how often the most frequent draft was right
    Estimate other_[kKinds];  // how often one of the others was right, if there were any
};

}  // namespace aerie
