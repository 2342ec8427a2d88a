// Texts of a few tokens with random functions of the prefix as target and draft, and acceptance by
// p / q on them: everything but the models is the product's code.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/accept.h"
#include "engine/ratio.h"
#include "engine/sampling.h"
#include "reference/choices.h"

namespace aerie::test {

using Tokens = std::vector<int>;

// Faults that can be planted in a cycle.
struct TinyFault {
    bool raw_q = false;        // the ratio uses q without filters, drafts are drawn with them
    bool raw_bonus = false;    // after a leaf the target's filters are left out
    bool keeps_tried = false;  // q still has the siblings that were tried
};

class TinyTexts {
  public:
    TinyTexts(int vocab, uint64_t seed, const Sampling& sampling)
        : vocab_(vocab), seed_(seed), sampling_(sampling) {}

    int vocab() const { return vocab_; }

    // Plain decoding's probabilities after these tokens, by the reference.
    const std::vector<double>& truth(const Tokens& text) {
        std::vector<double>& probabilities = truths_[text];
        if (!probabilities.empty()) return probabilities;
        std::vector<reference::Seen> seen(static_cast<size_t>(vocab_));
        for (size_t i = 0; i < text.size(); ++i)
            if (i < kPrompt.size())
                seen[size_t(text[i])].in_prompt = true;
            else
                ++seen[size_t(text[i])].put_out;
        const auto edited =
            reference::edited_logits(logits(text, false), sampling_.penalties, seen, {});
        return probabilities = reference::probs(edited, sampling_.filters);
    }

    // The tokens that a cycle puts out after `text`. `ranks`: siblings at each depth; they are
    // drawn only when they are needed, which changes no probability.
    Tokens cycle(const Tokens& text, const Tokens& ranks, Chance& drafts, Chance& accepts,
                 const TinyFault& fault = {}) {
        const auto seen = words(text);
        Tokens path;
        for (size_t depth = 0; depth <= ranks.size(); ++depth) {
            const bool is_leaf = depth == ranks.size();
            RatioTrial trial{choice(text, path, seen, false, fault.raw_bonus && is_leaf), {}};
            Tokens children;
            if (!is_leaf) {
                const Distribution& q = choice(text, path, seen, true, false);
                children = draw(q, ranks[depth], drafts);
                trial.q = fault.raw_q ? choice(text, path, seen, true, true) : q;
            }
            path.push_back(fault.keeps_tried ? choose_keeping(trial, children, accepts)
                                             : choose_by_ratio(trial, children, accepts));
            if (std::find(children.begin(), children.end(), path.back()) == children.end()) break;
        }
        return path;
    }

    // The same with a whole tree that is drawn first.
    Tokens tree_cycle(const Tokens& text, const Tokens& ranks, Chance& drafts, Chance& accepts) {
        const auto seen = words(text);
        TokenTree tree(text.back());
        Drawn drawn;
        drawn.entries = {0};
        std::vector<Tokens> paths = {{}};
        for (int node = 0; node < tree.size(); ++node) {
            const Tokens path = paths[size_t(node)];
            if (path.size() == ranks.size()) break;
            const Distribution& q = choice(text, path, seen, true, false);
            for (int token : draw(q, ranks[path.size()], drafts)) {
                drawn.entries.push_back(tree.size());
                tree.add(token, node);
                paths.push_back(path);
                paths.back().push_back(token);
            }
            drawn.parents.push_back({node, q});
        }
        const auto target = [&](int node) {
            return choice(text, paths[size_t(node)], seen, false, false);
        };
        const Path way = accept(tree, choices_by_ratio(tree, drawn, target, accepts));
        Tokens put_out;
        for (size_t i = 1; i < way.nodes.size(); ++i)
            put_out.push_back(tree.tokens[size_t(way.nodes[i])]);
        put_out.push_back(way.next);
        return put_out;
    }

    static inline const Tokens kPrompt = {0, 1};

  private:
    // Coarse values, so that there are ties, and -infinity for tokens that cannot be chosen.
    std::vector<float> logits(const Tokens& text, bool is_draft) const {
        uint64_t state = seed_ * 2 + is_draft;
        const auto next = [&state](uint64_t word) {
            state = (state ^ word) * 0x9E3779B97F4A7C15u;
            return state ^= state >> 29;
        };
        for (int token : text) next(uint64_t(token) + 1);
        std::vector<float> row;
        for (int i = 0; i < vocab_; ++i) {
            const auto word = uint32_t(next(77) >> 20);
            row.push_back(word % 11 == 0 ? -INFINITY : float(int(word % 13)) * 0.4f - 2.4f);
        }
        return row;
    }

    std::vector<int32_t> words(const Tokens& text) const {
        std::vector<int32_t> seen;
        if (!sampling_.penalties.any()) return seen;
        seen.resize(size_t(vocab_));
        for (size_t i = 0; i < text.size(); ++i)
            if (i < kPrompt.size())
                seen[size_t(text[i])] |= kInPrompt;
            else
                seen[size_t(text[i])] += kPutOut;
        return seen;
    }

    const Distribution& choice(const Tokens& text, const Tokens& path,
                               const std::vector<int32_t>& seen, bool is_draft, bool is_raw) {
        Tokens key = text;
        key.insert(key.end(), path.begin(), path.end());
        Distribution& known = choices_[{key, is_draft * 2 + is_raw}];
        if (!known.empty()) return known;
        const Filters raw{sampling_.filters.temperature};
        const TextRule rule{{is_raw ? raw : sampling_.filters, sampling_.penalties}, seen};
        return known = processed(logits(key, is_draft), rule, path);
    }

    static int choose_keeping(RatioTrial trial, const Tokens& children, Chance& chance) {
        const Distribution q = trial.q;
        for (int token : children) {
            if (trial.accepts(token, chance)) return token;
            trial.q = q;
        }
        return chance.pick(trial.p);
    }

    int vocab_;
    uint64_t seed_;
    Sampling sampling_;
    std::map<Tokens, std::vector<double>> truths_;
    std::map<std::pair<Tokens, int>, Distribution> choices_;
};

}  // namespace aerie::test
