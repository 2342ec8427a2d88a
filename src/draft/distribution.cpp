// Every filter keeps a prefix of one order (logit descending, id ascending). Nothing is sorted if
// no filter cuts.
#include "draft/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace aerie {

namespace {

struct Token {
    int id;
    float logit;
};

bool before(const Token& a, const Token& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The tokens with their logits after penalties; NaN logits are left out.
std::vector<Token> edited(std::span<const float> logits, const TextRule& rule,
                          std::span<const int> path, std::span<const int32_t> target_ids) {
    std::vector<int32_t> words(rule.seen.begin(), rule.seen.end());
    if (!words.empty())
        for (int token : path) words[size_t(token)] += kPutOut;
    std::vector<Token> tokens;
    tokens.reserve(logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
        Token token{target_ids.empty() ? int(i) : target_ids[i], logits[i]};
        const int32_t word = words.empty() ? 0 : words[size_t(token.id)];
        if (word != 0) token.logit = penalised(token.logit, rule.rule, word);
        if (!std::isnan(token.logit)) tokens.push_back(token);
    }
    return tokens;
}

double mass_of(const Token& token, double top, double temperature) {
    return std::exp((double(token.logit) - top) / temperature);
}

// Keeps the shortest prefix of the order with at least this share of the mass, at least one token.
void keep_share(std::vector<Token>& tokens, double share, double top, double temperature) {
    double total = 0;
    for (const Token& token : tokens) total += mass_of(token, top, temperature);
    constexpr size_t kFirst = 64, kGrowth = 8;
    for (size_t sorted = 0, count = kFirst; sorted < tokens.size(); count *= kGrowth) {
        sorted = std::min(count, tokens.size());
        std::partial_sort(tokens.begin(), tokens.begin() + long(sorted), tokens.end(), before);
        double sum = 0;
        for (size_t kept = 0; kept < sorted; ++kept) {
            sum += mass_of(tokens[kept], top, temperature);
            if (sum < share * total) continue;
            tokens.resize(kept + 1);
            return;
        }
    }
}

void filter(std::vector<Token>& tokens, const RowChoice& rule, double top) {
    if (const auto most = size_t(rule.top_k); rule.top_k > 0 && most < tokens.size()) {
        std::nth_element(tokens.begin(), tokens.begin() + long(most), tokens.end(), before);
        tokens.resize(most);
    }
    if (rule.top_p < 1) keep_share(tokens, rule.top_p, top, rule.temperature);
    if (rule.min_p_cutoff > -std::numeric_limits<double>::infinity())
        std::erase_if(tokens,
                      [&](const Token& token) { return token.logit < top + rule.min_p_cutoff; });
}

void normalise(Distribution& distribution) {
    double sum = 0;
    for (double probability : distribution.probabilities) sum += probability;
    for (double& probability : distribution.probabilities) probability /= sum;
}

}  // namespace

double Distribution::of(int token) const {
    const auto place = std::lower_bound(ids.begin(), ids.end(), token);
    return place != ids.end() && *place == token ? probabilities[size_t(place - ids.begin())] : 0;
}

void Distribution::remove(int token) {
    const auto place = std::lower_bound(ids.begin(), ids.end(), token);
    if (place == ids.end() || *place != token) return;
    probabilities.erase(probabilities.begin() + (place - ids.begin()));
    ids.erase(place);
    normalise(*this);
}

Distribution processed(std::span<const float> logits, const TextRule& rule,
                       std::span<const int> path, std::span<const int32_t> target_ids) {
    std::vector<Token> tokens = edited(logits, rule, path, target_ids);
    if (tokens.empty()) return {};
    const Token best = *std::min_element(tokens.begin(), tokens.end(), before);
    // An infinite best logit leaves nothing to weigh: its token is taken.
    if (rule.rule.temperature == 0 || !std::isfinite(best.logit)) return {{best.id}, {1}};
    filter(tokens, rule.rule, best.logit);
    const auto by_id = [](const Token& a, const Token& b) { return a.id < b.id; };
    if (!std::is_sorted(tokens.begin(), tokens.end(), by_id))
        std::sort(tokens.begin(), tokens.end(), by_id);
    Distribution result;
    result.ids.reserve(tokens.size());
    result.probabilities.reserve(tokens.size());
    for (const Token& token : tokens)
        if (const double mass = mass_of(token, best.logit, rule.rule.temperature); mass > 0) {
            result.ids.push_back(token.id);
            result.probabilities.push_back(mass);
        }
    normalise(result);
    return result;
}

Distribution excess(const Distribution& p, const Distribution& q) {
    Distribution rest;
    size_t other = 0;
    for (size_t i = 0; i < p.ids.size(); ++i) {
        while (other < q.ids.size() && q.ids[other] < p.ids[i]) ++other;
        const bool shared = other < q.ids.size() && q.ids[other] == p.ids[i];
        const double above = p.probabilities[i] - (shared ? q.probabilities[other] : 0);
        if (!(above > 0)) continue;
        rest.ids.push_back(p.ids[i]);
        rest.probabilities.push_back(above);
    }
    normalise(rest);
    return rest;
}

}  // namespace aerie
