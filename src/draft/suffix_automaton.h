// All that a text has said before, by its ends: a suffix automaton over tokens, built one token at
// a time in amortised constant time (Blumer et al. 1985). A state stands for the strings that end
// at the same places.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aerie {

class SuffixAutomaton {
  public:
    static constexpr int kStart = 0;  // the state of the empty string
    static constexpr int kNone = -1;

    struct State {
        int length = 0;       // of its longest string
        int suffix = kNone;   // state of its longest suffix that ends in more places
        int first_edge = -1;  // the newest one
        int newest = 0;       // where it ended last: tokens up to there
        int count = 0;        // how often it ended, as far as counted
    };
    struct Edge {
        int token = 0;
        int state = 0;  // what it leads to
        int next = -1;  // of the same state
        int from = 0;
    };

    // For texts of so many tokens; longer ones take further memory.
    explicit SuffixAutomaton(int tokens);
    static size_t size_bytes(int tokens);  // that it takes of the host when it has so many

    void clear();
    void add(int token);
    int size() const { return size_; }                      // tokens
    int states() const { return int(states_.size()) - 1; }  // but the start
    int edges() const { return int(edges_.size()); }

    const State& state(int id) const { return states_[size_t(id)]; }
    const Edge& edge(int id) const { return edges_[size_t(id)]; }
    // Of the longest end of the text that it had before, too; kStart: there is none.
    int known_end() const { return whole_ == kStart ? kStart : state(whole_).suffix; }
    // Where this token leads from a state; kNone: it never followed.
    int after(int state, int token) const;

  private:
    int find_slot(int state, int token) const;
    void link(int from, int token, int to);
    int add_state(const State& state);
    int split(int from, int token, int state);
    void count(int state);
    void grow_slots();

    std::vector<State> states_;
    std::vector<Edge> edges_;
    std::vector<int> slots_;  // open addressing by (state, token): edges; -1: free
    int whole_ = kStart;      // of the whole text
    int size_ = 0;
};

}  // namespace aerie
