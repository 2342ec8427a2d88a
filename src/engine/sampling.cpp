#include "engine/sampling.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
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
    // The values are compared and printed in f32 with the shortest digits, so 0.01 prints as 0.01.
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

std::vector<TokenLogprob> likeliest(std::span<const float> logits, int count) {
    if (count == 0) return {};
    std::vector<int> all(logits.size()), ids(std::min(logits.size(), size_t(count)));
    std::iota(all.begin(), all.end(), 0);
    std::partial_sort_copy(all.begin(), all.end(), ids.begin(), ids.end(), [&](int a, int b) {
        const float x = logits[size_t(a)], y = logits[size_t(b)];
        return x > y || (x == y && a < b);
    });
    std::vector<TokenLogprob> best;
    // The sum over all tokens is computed only once.
    const double total = double(logits[size_t(ids[0])]) - log_probability(logits, ids[0]);
    for (int id : ids) best.push_back({id, float(double(logits[size_t(id)]) - total)});
    return best;
}

void SeenTokens::reset(int vocab) {
    words_.assign(size_t(vocab), 0);
    changed_.clear();
    all_changed_ = true;
}

void SeenTokens::add(std::span<const int> tokens, bool are_output) {
    for (int token : tokens) {
        int32_t& word = words_[size_t(token)];
        word = are_output ? word + kPutOut : word | kInPrompt;
        if (all_changed_) continue;
        if (changed_.size() < changed_.capacity())
            changed_.push_back(token);
        else
            all_changed_ = true;
    }
}

void SeenTokens::write_to(Backend& be, Tensor row) {
    if (all_changed_) {
        be.write(row, words_.data());
    } else {
        for (int32_t token : changed_) be.write(row.col_range(token, 1), &words_[size_t(token)]);
    }
    changed_.clear();
    all_changed_ = false;
}

}  // namespace aerie
