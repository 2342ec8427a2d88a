// A suffix automaton over tokens, which finds everything that a text has said before by how it
// ended. It is built one token at a time in amortised constant time (Blumer et al. 1985). A state
// stands for all strings that end at the same places.
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
        int length = 0;       // length of the state's longest string
        int suffix = kNone;   // state of its longest suffix that ends in more places
        int first_edge = -1;  // newest edge, the head of a list
        int newest = 0;       // end of its newest occurrence: tokens up to there
        int count = 0;        // occurrences; long chains of suffixes are not counted to their end
    };
    struct Edge {
        int token = 0;
        int state = 0;  // the state that the edge leads to
        int next = -1;  // next edge in the list of `from`
        int from = 0;
    };

    // Allocates memory for `tokens` tokens; a longer text allocates more.
    explicit SuffixAutomaton(int tokens);
    static size_t size_bytes(int tokens);  // bytes of host memory with so many tokens

    void clear();
    void add(int token);
    int size() const { return size_; }                      // tokens in the text
    int states() const { return int(states_.size()) - 1; }  // without the start
    int edges() const { return int(edges_.size()); }

    const State& state(int id) const { return states_[size_t(id)]; }
    const Edge& edge(int id) const { return edges_[size_t(id)]; }
    // State of the longest suffix of the text that also occurred earlier; kStart: there is none.
    int known_end() const { return whole_ == kStart ? kStart : state(whole_).suffix; }
    // The state after this token; kNone: the token never followed here.
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
    std::vector<int> slots_;  // hash table by (state, token) with open addressing: edges; -1: free
    int whole_ = kStart;      // state of the whole text
    int size_ = 0;
};

}  // namespace aerie
