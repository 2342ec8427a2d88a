// A text of n tokens has at most 2 n states and 3 n edges. No edge is ever removed, so copies made
// by splits are within these bounds, too.
#include "draft/ngram/suffix_automaton.h"

#include <algorithm>

namespace aerie {

namespace {

constexpr int kMaxCounted = 32;  // most suffixes that are counted for each added token

size_t most_states(int tokens) {
    return size_t(tokens) * 2 + 2;
}

size_t most_edges(int tokens) {
    return size_t(tokens) * 3 + 2;
}

// A power of two, more than twice the number of edges.
size_t slots_for(int tokens) {
    size_t slots = 64;
    while (slots < size_t(tokens) * 6) slots *= 2;
    return slots;
}

size_t hash_of(int state, int token) {
    uint64_t key = (uint64_t(uint32_t(state)) << 32) | uint32_t(token);
    key = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15u;
    return size_t(key ^ (key >> 29));
}

}  // namespace

SuffixAutomaton::SuffixAutomaton(int tokens) {
    states_.reserve(most_states(tokens));
    edges_.reserve(most_edges(tokens));
    slots_.assign(slots_for(tokens), -1);
    states_.push_back({});
}

size_t SuffixAutomaton::size_bytes(int tokens) {
    return most_states(tokens) * sizeof(State) + most_edges(tokens) * sizeof(Edge) +
           slots_for(tokens) * sizeof(int);
}

void SuffixAutomaton::clear() {
    states_.assign(1, {});
    edges_.clear();
    std::fill(slots_.begin(), slots_.end(), -1);
    whole_ = kStart;
    size_ = 0;
}

// The slot of this edge, or the free slot at which it would be inserted.
int SuffixAutomaton::find_slot(int state, int token) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash_of(state, token) & mask;
    while (slots_[at] >= 0 && (edge(slots_[at]).from != state || edge(slots_[at]).token != token))
        at = (at + 1) & mask;
    return int(at);
}

int SuffixAutomaton::after(int state, int token) const {
    const int found = slots_[size_t(find_slot(state, token))];
    return found < 0 ? kNone : edge(found).state;
}

void SuffixAutomaton::grow_slots() {
    slots_.assign(slots_.size() * 2, -1);
    for (int i = 0; i < int(edges_.size()); ++i)
        slots_[size_t(find_slot(edge(i).from, edge(i).token))] = i;
}

void SuffixAutomaton::link(int from, int token, int to) {
    if ((edges_.size() + 1) * 2 > slots_.size()) grow_slots();
    int& slot = slots_[size_t(find_slot(from, token))];
    if (slot >= 0) {
        edges_[size_t(slot)].state = to;
        return;
    }
    slot = int(edges_.size());
    edges_.push_back({token, to, state(from).first_edge, from});
    states_[size_t(from)].first_edge = slot;
}

int SuffixAutomaton::add_state(const State& state) {
    states_.push_back(state);
    return int(states_.size()) - 1;
}

// Splits `state`, which has strings longer than those that `from` and the token make. The shorter
// ones move to a new state, which is returned.
int SuffixAutomaton::split(int from, int token, int state) {
    State shorter = this->state(state);
    shorter.length = this->state(from).length + 1;
    shorter.first_edge = -1;
    const int made = add_state(shorter);
    for (int i = this->state(state).first_edge; i >= 0; i = edge(i).next)
        link(made, edge(i).token, edge(i).state);
    states_[size_t(state)].suffix = made;
    for (; from != kNone && after(from, token) == state; from = this->state(from).suffix)
        link(from, token, made);
    return made;
}

// Counts an occurrence that ends here for this state and for the states of its suffixes.
void SuffixAutomaton::count(int state) {
    for (int i = 0; i < kMaxCounted && state > kStart; ++i) {
        State& one = states_[size_t(state)];
        one.newest = size_;
        ++one.count;
        state = one.suffix;
    }
}

void SuffixAutomaton::add(int token) {
    ++size_;
    const int made = add_state({size_, kStart, -1, 0, 0});
    int from = whole_;
    for (; from != kNone && after(from, token) == kNone; from = state(from).suffix)
        link(from, token, made);
    if (from != kNone) {
        const int met = after(from, token);
        const bool is_one_longer = state(met).length == state(from).length + 1;
        const int suffix = is_one_longer ? met : split(from, token, met);
        states_[size_t(made)].suffix = suffix;
    }
    whole_ = made;
    count(made);
}

}  // namespace aerie
