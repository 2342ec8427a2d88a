// Repetitions of a text: the suffix automaton against a plain search, and the drafts made from it.
#include "draft/ngram/continuations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <random>
#include <vector>

#include "draft/ngram/suffix_automaton.h"

namespace aerie::test {
namespace {

// The ends of all places where the last `length` tokens of the text occur.
std::vector<int> places(const std::vector<int>& text, int length) {
    std::vector<int> ends;
    for (int end = length; end <= int(text.size()); ++end)
        if (std::equal(text.end() - length, text.end(), text.begin() + (end - length)))
            ends.push_back(end);
    return ends;
}

TEST(SuffixAutomaton, KnowsTheLongestEndThatWasThereBefore) {
    std::mt19937 random(1);
    for (int tokens : {1, 2, 3, 20}) {
        std::vector<int> text;
        SuffixAutomaton automaton(8);  // it grows
        for (int i = 0; i < 300; ++i) {
            text.push_back(int(random() % unsigned(tokens)));
            automaton.add(text.back());
            int longest = 0;
            while (longest < int(text.size()) && places(text, longest + 1).size() > 1) ++longest;
            const auto& state = automaton.state(automaton.known_end());
            ASSERT_EQ(state.length, longest) << tokens << " tokens, text of " << text.size();
            if (longest == 0) continue;
            const std::vector<int> ends = places(text, longest);
            EXPECT_EQ(state.newest, int(text.size()));
            // Exactly the tokens that followed it before.
            for (int token = 0; token < tokens; ++token) {
                bool followed = false;
                for (int end : ends)
                    followed |= end < int(text.size()) && text[size_t(end)] == token;
                ASSERT_EQ(automaton.after(automaton.known_end(), token) >= 0, followed);
            }
        }
        automaton.clear();
        EXPECT_EQ(automaton.size(), 0);
        EXPECT_EQ(automaton.known_end(), SuffixAutomaton::kStart);
    }
}

TEST(SuffixAutomaton, CountsPlacesOfStrings) {
    SuffixAutomaton automaton(16);
    for (int token : {5, 6, 5, 6, 5, 7, 5, 6}) automaton.add(token);
    const int state = automaton.after(automaton.after(SuffixAutomaton::kStart, 5), 6);
    EXPECT_EQ(automaton.state(state).count, 3);
    EXPECT_EQ(automaton.state(state).newest, 8);
    EXPECT_EQ(automaton.after(SuffixAutomaton::kStart, 8), SuffixAutomaton::kNone);
}

// Amortised constant time per token: few states and edges are made, and a late token takes no
// longer than an early one, but for cache misses. Work that grew with the text would take 100 times
// as long.
TEST(SuffixAutomaton, IsLinearInTheText) {
    constexpr int kLength = 200'000, kPart = 2'000;
    std::mt19937 random(2);
    for (int tokens : {1, 2, 50'000}) {
        SuffixAutomaton automaton(kLength);
        const auto seconds_of_a_part = [&] {  // processor time of this program alone
            const std::clock_t start = std::clock();
            for (int i = 0; i < kPart; ++i) automaton.add(int(random() % unsigned(tokens)));
            return double(std::clock() - start) / CLOCKS_PER_SEC;
        };
        const double early = seconds_of_a_part();
        double late = HUGE_VAL;  // the least of the last ten parts
        for (int i = 1; i < kLength / kPart; ++i) {
            const double part = seconds_of_a_part();
            if (i >= kLength / kPart - 10) late = std::min(late, part);
        }
        EXPECT_LE(automaton.states(), 2 * kLength);
        EXPECT_LE(automaton.edges(), 3 * kLength);
        std::printf("%d tokens: %.0f ns a token early, %.0f late\n", tokens, early / kPart * 1e9,
                    late / kPart * 1e9);
        EXPECT_LE(late, 20 * early);
    }
}

ContinuationList after(const std::vector<int>& text, int most = 63, int deepest = 6) {
    Continuations said(16);
    said.follow(text, Continuations::Reads::prompt);
    ContinuationList list;
    said.likeliest(most, deepest, 10, 0.001, list);
    return list;
}

TEST(Continuations, AreATreeOfAllThatFollowed) {
    const ContinuationList list =
        after({1, 2, 3, 4, 9, 1, 2, 3, 5, 9, 1, 2, 3, 4, 8, 1, 2, 3}, 63, 1);
    ASSERT_GE(list.size(), 2u);
    EXPECT_EQ(list[0].token, 4);  // it followed twice, 5 once
    EXPECT_EQ(list[1].token, 5);
    EXPECT_EQ(list[1].parent, -1);
    EXPECT_GT(list[0].probability, list[1].probability);
}

TEST(Continuations, ParentsComeFirstAndAreLikelier) {
    std::mt19937 random(3);
    std::vector<int> text;
    for (int i = 0; i < 400; ++i) text.push_back(int(random() % 5));
    const ContinuationList list = after(text);
    ASSERT_EQ(list.size(), 63u);
    for (size_t i = 0; i < list.size(); ++i) {
        ASSERT_LT(list[i].parent, int(i));
        ASSERT_LE(list[i].probability, list[i > 0 ? i - 1 : 0].probability);
        for (size_t j = 0; j < i; ++j)
            ASSERT_FALSE(list[i].parent == list[j].parent && list[i].token == list[j].token);
    }
}

TEST(Continuations, AreTrustedAsFarAsTheyWereRight) {
    const auto first = [](bool right) {
        Continuations said(16);
        std::vector<int> text = {1};
        said.follow(text, Continuations::Reads::prompt);  // from here on it learns
        for (int i = 0; i < 200; ++i) {  // "1 2" again and again; then 3, or something new
            for (int token : {1, 2, right ? 3 : 1000 + i}) text.push_back(token);
            said.follow(text, Continuations::Reads::answer);
        }
        text.insert(text.end(), {1, 2});
        said.follow(text, Continuations::Reads::prompt);
        ContinuationList list;
        said.likeliest(1, 1, 1, 0, list);
        return list.empty() ? 0.0f : list[0].probability;
    };
    EXPECT_GT(first(true), 0.9f);
    EXPECT_LT(first(false), 0.1f);
}

TEST(Continuations, OfACutTextAreThoseOfOneThatWasNeverLonger) {
    std::vector<int> text = {1, 2, 3, 4, 1, 2, 3, 5, 1, 2};
    Continuations said(4);
    said.follow(text, Continuations::Reads::prompt);
    said.truncate(6);
    text.resize(6);
    said.follow(text, Continuations::Reads::prompt);
    ContinuationList list;
    said.likeliest(63, 3, 10, 0.001, list);
    const ContinuationList wanted = after(text, 63, 3);
    ASSERT_EQ(list.size(), wanted.size());
    for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i].token, wanted[i].token);
}

}  // namespace
}  // namespace aerie::test
