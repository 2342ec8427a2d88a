// Compares the first trees of golden prompts, made by an independent program, with those of a
// session.
#pragma once

#include <cmath>
#include <map>

#include "engine/bundled.h"

namespace aerie::test {

// A tree as a map from each node's path of tokens to its value.
inline std::map<std::vector<int>, double> paths_of(const std::vector<int>& tokens,
                                                   const std::vector<int>& parents,
                                                   const std::vector<double>& values) {
    std::vector<std::vector<int>> path(tokens.size() + 1);
    std::map<std::vector<int>, double> result;
    for (size_t i = 0; i < tokens.size(); ++i) {
        path[i + 1] = path[size_t(parents[i])];
        path[i + 1].push_back(tokens[i]);
        result[path[i + 1]] = values[i];
    }
    return result;
}

// Values of a table of candidates, by path of tokens.
inline std::map<std::vector<int>, double> values_of(std::span<const Candidate> table) {
    std::vector<int> tokens, parents;
    std::vector<double> values;
    for (const Candidate& candidate : table) {
        tokens.push_back(candidate.token);
        parents.push_back(candidate.parent + 1);
        values.push_back(candidate.value);
    }
    return paths_of(tokens, parents, values);
}

constexpr double kValueTolerance = 1e-4;  // for a sum of up to six log-probabilities
constexpr int kMaxNearCut = 2;            // paths that change places at the cut, in all trees

// Proposes the first tree of each golden prompt of this method, 14 in all. `table` holds all
// candidates of the newest tree, as a hook has seen them. The finding is a line; it is empty if the
// trees agree.
inline std::string first_trees_finding(Session& session, const std::string& method,
                                       const std::vector<Candidate>& table) {
    int trees = 0, missing = 0, near_cut = 0;
    double worst = 0;
    const Json golden = read_data("trees.json");
    for (const Json& entry : *golden.array()) {
        if (*entry.find("method")->string() != method) continue;
        ++trees;
        session.begin({});
        const ChosenTokens chosen = session.prefill(ints(*entry.find("prompt_ids")));
        if (chosen.tokens.front() != int(entry.find("pending")->number())) return "another root";
        const TokenTree tree = session.propose();
        if (tree.size() != 60) return "a tree of " + std::to_string(tree.size()) + " nodes";
        const std::vector<int> drafted(tree.tokens.begin() + 1, tree.tokens.end());
        const std::vector<int> parents(tree.parents.begin() + 1, tree.parents.end());
        const auto ours = paths_of(drafted, parents, std::vector<double>(drafted.size()));
        const auto our_values = values_of(table);
        std::vector<double> values;
        for (const Json& value : *entry.find("values")->array()) values.push_back(value.number());
        const auto theirs =
            paths_of(ints(*entry.find("tokens")), ints(*entry.find("parents")), values);
        const double cut = *std::min_element(values.begin(), values.end());
        for (const auto& [path, value] : theirs) {
            if (!ours.count(path)) ++(value - cut <= 1e-4 ? near_cut : missing);
            if (our_values.count(path))
                worst = std::max(worst, std::abs(our_values.at(path) - value));
        }
    }
    char line[120];
    std::snprintf(line, sizeof(line),
                  "%d trees, %d paths differ near the cut, %d elsewhere; values differ by %.1e",
                  trees, near_cut, missing, worst);
    std::printf("%s: %s\n", method.c_str(), line);
    const bool agree =
        trees == 14 && missing == 0 && near_cut <= kMaxNearCut && worst <= kValueTolerance;
    return agree ? "" : line;
}

}  // namespace aerie::test
