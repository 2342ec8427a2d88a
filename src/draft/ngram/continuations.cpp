// The longest match of the text's end predicts first; shorter matches share the probability that is
// left.
#include "draft/ngram/continuations.h"

#include <algorithm>

#include "draft/methods.h"

namespace aerie {

namespace {

constexpr int kMaxEdges = 32;         // the newest ones, to which the search is limited
constexpr double kNewestBonus = 1.5;  // added to the weight of the newest follower
constexpr double kMemory = 0.97;
constexpr double kFirstPrior[] = {0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.85, 0.9};
constexpr double kOtherPrior = 0.1, kPriorWeight = 4;
constexpr double kSurest = 0.97;  // largest probability of a prediction
constexpr double kMaxLesson = 1e12;
constexpr int kBacksteps = 2;  // how many shorter matches are searched, too

}  // namespace

size_t continuations_bytes(const DraftPlan& plan) {
    return size_t(plan.sequences) * SuffixAutomaton::size_bytes(plan.context);
}

// Matched lengths in one kind: 1, 2, 3, 4, 5 to 6, 7 to 10, 11 to 18, more.
int Continuations::kind_of(int matched) {
    constexpr int kLast[] = {1, 2, 3, 4, 6, 10, 18};
    return int(std::lower_bound(std::begin(kLast), std::end(kLast), matched) - std::begin(kLast));
}

Continuations::Place Continuations::end() const {
    const int state = said_.known_end();
    return {state, said_.state(state).length};
}

// Appends the tokens that followed at `place`: the most frequent first, the newer first among
// equals. `left` is the probability that no guess in `list` has taken.
void Continuations::add_guesses(Place place, double left, Guesses& list) const {
    struct Follower {
        int edge;
        double weight;
        int newest;
    };
    FixedVector<Follower, kMaxEdges> followers;
    int newest = 0;
    for (int i = said_.state(place.state).first_edge; i >= 0 && followers.size() < kMaxEdges;
         i = said_.edge(i).next) {
        const auto& state = said_.state(said_.edge(i).state);
        followers.push_back({i, double(std::max(state.count, 1)), state.newest});
        newest = std::max(newest, state.newest);
    }
    double total = 0;
    for (Follower& follower : followers) {
        if (follower.newest == newest) follower.weight += kNewestBonus;
        total += follower.weight;
    }
    std::sort(followers.begin(), followers.end(), [](const Follower& a, const Follower& b) {
        return a.weight != b.weight ? a.weight > b.weight : a.newest > b.newest;
    });
    const int kind = kind_of(place.matched);
    const double first =
        std::min(kSurest, first_[kind].mean(kFirstPrior[kind], kPriorWeight)) * left;
    const double others =
        std::min(other_[kind].mean(kOtherPrior, kPriorWeight) * left, left - first);
    const double rest = followers.empty() ? 0 : total - followers[0].weight;
    for (size_t i = 0; i < followers.size() && list.size() < kMaxGuesses; ++i) {
        const auto& edge = said_.edge(followers[i].edge);
        const auto is_there = [&](const Proposal& guess) { return guess.token == edge.token; };
        if (std::any_of(list.begin(), list.end(), is_there)) continue;
        const double share = i == 0 ? first : others * followers[i].weight / rest;
        list.push_back({edge.token, {edge.state, place.matched + 1}, share});
    }
}

// The guesses of the match at `place`, then those of shorter matches; by descending share within
// each match.
Continuations::Guesses Continuations::guesses(Place place) const {
    Guesses list;
    double left = 1;
    for (int step = 0; step <= kBacksteps && place.state > SuffixAutomaton::kStart; ++step) {
        const size_t before = list.size();
        if (list.size() < kMaxGuesses) add_guesses(place, left, list);
        for (size_t i = before; i < list.size(); ++i) left -= list[i].share;
        place.state = said_.state(place.state).suffix;
        place.matched = std::min(place.matched, said_.state(place.state).length);
    }
    return list;
}

void Continuations::learn(int token) {
    const Place place = end();
    if (place.state == SuffixAutomaton::kStart) return;
    Guesses list;
    add_guesses(place, 1, list);
    if (list.empty()) return;
    const int kind = kind_of(place.matched);
    first_[kind].add(list[0].token == token, 1, kMemory);
    if (list.size() == 1) return;
    const bool is_other = std::any_of(list.begin() + 1, list.end(),
                                      [=](const Proposal& guess) { return guess.token == token; });
    other_[kind].add(is_other, 1, kMemory);
}

void Continuations::follow(std::span<const int> text, Reads what) {
    for (size_t i = size_t(said_.size()); i < text.size(); ++i) {
        if (what == Reads::answer) learn(text[i]);
        said_.add(text[i]);
    }
}

void Continuations::truncate(int tokens) {
    if (tokens == 0)
        for (int kind = 0; kind < kKinds; ++kind) first_[kind] = other_[kind] = {};
    if (tokens >= said_.size()) return;
    said_.clear();
}

void Continuations::likeliest(int most, int deepest, int widest, double least,
                              ContinuationList& list) const {
    struct Open {
        Continuation guess;
        Place place;
        int depth;
    };
    FixedVector<Open, kMaxNodes * kMaxGuesses> open;  // a heap
    const auto less = [](const Open& a, const Open& b) {
        return a.guess.probability < b.guess.probability;
    };
    const auto expand = [&](Place place, int parent, double probability, int depth) {
        if (depth == deepest) return;
        int count = 0;
        for (const Proposal& guess : guesses(place)) {
            const float path = float(probability * guess.share);
            if (count++ == widest || !(path >= least) || open.size() == open.capacity()) continue;
            open.push_back({{guess.token, parent, path}, guess.place, depth + 1});
            std::push_heap(open.begin(), open.end(), less);
        }
    };
    list.clear();
    expand(end(), -1, 1, 0);
    while (!open.empty() && int(list.size()) < most) {
        std::pop_heap(open.begin(), open.end(), less);
        const Open next = open.back();
        open.pop_back();
        list.push_back(next.guess);
        Place place = next.place;
        // The newest place of a string has no successor yet. Then the next shorter match predicts:
        // a repetition is taken to go on repeating.
        if (said_.state(place.state).first_edge < 0) place.state = said_.state(place.state).suffix;
        expand(place, int(list.size()) - 1, double(next.guess.probability), next.depth);
    }
}

void Continuations::learn_like(const Continuations& other) {
    std::copy(std::begin(other.first_), std::end(other.first_), first_);
    std::copy(std::begin(other.other_), std::end(other.other_), other_);
}

void Continuations::save(SaveSink& to) const {
    for (const auto* of : {&first_, &other_})
        for (const Estimate& estimate : *of) {
            to.value(estimate.sum);
            to.value(estimate.weight);
        }
}

void Continuations::load(SaveSource& from) {
    truncate(0);
    for (auto* of : {&first_, &other_})
        for (Estimate& estimate : *of) {
            estimate.sum = from.value(0.0, kMaxLesson, "what lookups have taught");
            estimate.weight = from.value(0.0, kMaxLesson, "what lookups have taught");
        }
}

}  // namespace aerie
