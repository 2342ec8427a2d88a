// The log-probabilities that another softness would have given follow from the recorded ones.
#include "draft/trees/softness.h"

#include <algorithm>
#include <cmath>

namespace aerie {

namespace {

// Measured on the bundled heads at temperatures of 0.5, 1 and 1.5: a head's errors matter more at a
// low temperature. Learning starts at kFirstAtOne * temperature^kFirstPower, and must gain kCaution
// in log-loss to double or halve the softness.
constexpr double kFirstAtOne = 0.7, kFirstPower = -0.7, kCaution = 20;
constexpr double kStep = 1.0 / 6;  // difference of log2(softness) between neighbouring values
constexpr double kLeast = 1e-6;    // probabilities are clamped to [kLeast, 1 - kLeast]
constexpr int kSoftmaxWidth = 10;  // least number of candidates in a softmax (op TopK)

// Log-loss of a candidate's probability, given whether the candidate was true.
double log_loss(double probability, bool is_true) {
    const double p = std::clamp(probability, kLeast, 1 - kLeast);
    return -std::log(is_true ? p : 1 - p);
}

// The log-sum-exp of the siblings' log-probabilities times `by`. Candidates of the softmax that are
// not known share the remaining probability evenly.
double log_total(std::span<const Candidate> siblings, double by) {
    double sum = 0, known = 0;
    for (const Candidate& candidate : siblings) {
        sum += std::exp(by * double(candidate.log_prob));
        known += std::exp(double(candidate.log_prob));
    }
    const int others = kSoftmaxWidth - int(siblings.size());
    if (const double left = 1 - known; others > 0 && left > kLeast)
        sum += others * std::exp(by * std::log(left / others));
    return std::log(sum);
}

}  // namespace

void LearnedSoftness::begin(int candidates) {
    loss_ = {};
    in_use_ = kFirst;
    table_.clear();
    table_.reserve(size_t(candidates));
    total_ = {};
}

float LearnedSoftness::value(float temperature) const {
    const double first = kFirstAtOne * std::pow(double(temperature), kFirstPower);
    return float(std::clamp(first * std::exp2((in_use_ - kFirst) * kStep), 0.05, 20.0));
}

void LearnedSoftness::ranked(std::span<const Candidate> table) {
    table_.assign(table.begin(), table.end());
}

void LearnedSoftness::judge(std::span<const Candidate> siblings, int token) {
    if (!std::isfinite(log_total(siblings, 1))) return;  // the head is damaged
    for (int index = 0; index < kValues; ++index) {
        const double by = std::exp2((in_use_ - index) * kStep), total = log_total(siblings, by);
        double loss = 0;
        for (const Candidate& candidate : siblings)
            loss += log_loss(std::exp(by * double(candidate.log_prob) - total),
                             candidate.token == token);
        loss_[size_t(index)] += loss;
        if (index == kFirst) total_.first += loss;
        if (index == in_use_) total_.learned += loss;
    }
    total_.candidates += int(siblings.size());
}

// Follows the true tokens down the candidates, including those that were not verified.
void LearnedSoftness::learn(const Verified& verified) {
    const std::span<const Candidate> table = table_;
    int entry = -1;
    size_t depth = 0;
    for (size_t first = 0, last; first < table.size(); first = last) {  // parents first
        for (last = first; last < table.size() && table[last].parent == table[first].parent;)
            ++last;
        if (table[first].parent != entry) continue;
        const bool is_last = ++depth == verified.accepted.size();
        const int token =
            is_last ? verified.next : verified.tree.tokens[size_t(verified.accepted[depth])];
        const std::span<const Candidate> siblings = table.subspan(first, last - first);
        judge(siblings, token);
        const auto found = std::find_if(siblings.begin(), siblings.end(),
                                        [=](const Candidate& one) { return one.token == token; });
        if (is_last || found == siblings.end()) break;
        entry = int(first) + int(found - siblings.begin());
    }
    table_.clear();
    const auto cost = [&](int index) {
        const double distance = (index - kFirst) * kStep;
        return loss_[size_t(index)] + kCaution * distance * distance;
    };
    for (int index = 0; index < kValues; ++index)
        if (cost(index) < cost(in_use_)) in_use_ = index;
}

void LearnedSoftness::save(SaveSink& to) const {
    for (double loss : loss_) to.value(loss);
    to.value(int32_t(in_use_));
}

void LearnedSoftness::load(SaveSource& from) {
    constexpr double kMaxLoss = 1e15;
    for (double& loss : loss_) loss = from.value(0.0, kMaxLoss, "what drafts have taught");
    in_use_ = from.value<int32_t>(0, kValues - 1, "the softness in use");
    table_.clear();
    total_ = {};
}

}  // namespace aerie
