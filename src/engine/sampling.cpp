// Penalties on each node's own path, made of counts that are raised and lowered along the tree.
#include "engine/sampling.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "core/error.h"

namespace aerie {

namespace {

std::string shortest(float value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

}  // namespace

void check_sampling(const Sampling& sampling) {
    // In f32, and with its shortest digits: 0.01 is what the user wrote.
    const auto check = [](const char* what, float value, float low, float high) {
        if (value >= low && value <= high) return;
        throw UsageError(std::string(what) + " must lie between " + shortest(low) + " and " +
                         shortest(high) + ", not " + shortest(value));
    };
    check("temperature", sampling.filters.temperature, 0, 100);
    check("top-k", float(sampling.filters.top_k), 0, 1 << 20);
    check("top-p", sampling.filters.top_p, 0, 1);
    check("min-p", sampling.filters.min_p, 0, 1);
    check("repetition penalty", sampling.penalties.repetition, 0.01f, 100);
    check("frequency penalty", sampling.penalties.frequency, -100, 100);
    check("presence penalty", sampling.penalties.presence, -100, 100);
}

double log_probability(std::span<const float> logits, int token) {
    const double top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float logit : logits) sum += std::exp(double(logit) - top);
    return double(logits[size_t(token)]) - top - std::log(sum);
}

void TokenHistory::reset(const Penalties& penalties, int vocab) {
    penalties_ = penalties;
    outputs_.assign(size_t(vocab), 0);
    seen_.assign(size_t(vocab), 0);
    tokens_.clear();
    tokens_.reserve(size_t(vocab));
}

int TokenHistory::reserve(int nodes, int more) {
    if (!penalties_.any()) return 0;
    const size_t count = size_t(nodes) * std::min(tokens_.size() + size_t(more), seen_.size());
    edits_.reserve(count);
    return int(count);
}

void TokenHistory::add_prompt(std::span<const int> tokens) {
    for (int token : tokens)
        if (seen_[size_t(token)]++ == 0) tokens_.push_back(token);
}

void TokenHistory::add_output(int token) {
    add_prompt({&token, 1});
    ++outputs_[size_t(token)];
}

// Undoes the newest add_output.
void TokenHistory::remove_output(int token) {
    --outputs_[size_t(token)];
    if (--seen_[size_t(token)] == 0) tokens_.pop_back();
}

void TokenHistory::append(int row) {
    if (!penalties_.any()) return;
    for (int token : tokens_) {
        const int count = outputs_[size_t(token)];
        const float add =
            count > 0 ? -(penalties_.frequency * float(count) + penalties_.presence) : 0;
        edits_.push_back({row, token, penalties_.repetition, add});
    }
}

std::span<const Edit> TokenHistory::edits() {
    edits_.clear();
    append(-1);
    return edits_;
}

std::span<const Edit> TokenHistory::edits(const TokenTree& tree) {
    edits_.clear();
    if (!penalties_.any()) return edits_;
    for (int node = 0; node < tree.size(); ++node) {
        DepthList<int> path;
        for (int i = node; i > 0; i = tree.parents[i]) path.push_back(tree.tokens[i]);
        for (size_t i = path.size(); i-- > 0;) add_output(path[i]);
        append(node);
        for (int token : path) remove_output(token);
    }
    return edits_;
}

}  // namespace aerie
