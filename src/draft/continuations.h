// How a text may go on by what it said before: what followed its last tokens where they stood
// earlier, in several places, with the chances that such guesses had in this text so far.
#pragma once

#include <span>

#include "core/saved.h"
#include "draft/estimate.h"
#include "draft/suffix_automaton.h"
#include "draft/tree.h"

namespace aerie {

// A guess. Parents come first, and are likelier.
struct Continuation {
    int token = 0;
    int parent = -1;        // of the guesses; -1: the text's end
    float probability = 0;  // of the path to it
};
using ContinuationList = FixedVector<Continuation, kMaxNodes - 1>;

// Given its parent.
inline float conditional_of(const ContinuationList& list, const Continuation& guess) {
    return guess.parent < 0 ? guess.probability
                            : guess.probability / list[size_t(guess.parent)].probability;
}

struct DraftPlan;

// What the Continuations of so many texts take of the host's memory when the texts are full.
size_t continuations_bytes(const DraftPlan& plan);

class Continuations {
  public:
    explicit Continuations(int tokens) : said_(tokens) {}

    // Reads the text as far as it is new: a prompt, or tokens that were guessed at, from which it
    // learns.
    enum class Reads { prompt, answer };
    void follow(std::span<const int> text, Reads what);
    // The text was cut to its first tokens; 0: a new one, of which nothing is learned yet.
    void truncate(int tokens);

    // The likeliest ones, none below `least`. At most `most`, `deepest` tokens, and `widest` that
    // follow the same token.
    void likeliest(int most, int deepest, int widest, double least, ContinuationList& list) const;

    // Takes over what another text has taught.
    void learn_like(const Continuations& other);
    void save(SaveSink& to) const;
    void load(SaveSource& from);  // throws Error; the text is to be followed again

  private:
    // A place in what was said: tokens of the text's end that lead to it.
    struct Place {
        int state = SuffixAutomaton::kStart;
        int matched = 0;
    };
    static constexpr int kMostGuesses = 8;
    struct Guess {
        int token;
        Place place;
        double share;  // probability that this token follows
    };
    using Guesses = FixedVector<Guess, kMostGuesses>;
    // How long a match is, in kinds.
    static constexpr int kKinds = 8;
    static int kind_of(int matched);

    Place end() const;
    Guesses guesses(Place place) const;
    void add_guesses(Place place, double left, Guesses& list) const;
    void learn(int token);

    SuffixAutomaton said_;
    Estimate first_[kKinds];  // the guess seen most was right
    Estimate other_[kKinds];  // one of the others was, where there were some
};

}  // namespace aerie
