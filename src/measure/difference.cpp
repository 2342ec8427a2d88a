// Sums are in double, because they measure errors of floats.
#include "measure/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace aerie {

namespace {

double ratio(double error_squares, double reference_squares) {
    if (error_squares == 0) return 0;
    if (reference_squares == 0) return std::numeric_limits<double>::infinity();
    return std::sqrt(error_squares / reference_squares);
}

// The logarithm of the softmax's denominator.
double log_sum(std::span<const float> logits) {
    const double most = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float logit : logits) sum += std::exp(double(logit) - most);
    return most + std::log(sum);
}

}  // namespace

void Difference::add_row(std::span<const float> reference, std::span<const float> device) {
    double error = 0, squares = 0;
    for (size_t i = 0; i < reference.size(); ++i) {
        const double difference = double(device[i]) - reference[i];
        error += difference * difference;
        squares += double(reference[i]) * reference[i];
        equal += std::bit_cast<uint32_t>(reference[i]) == std::bit_cast<uint32_t>(device[i]);
        not_finite += !std::isfinite(device[i]);
        reference_not_finite += !std::isfinite(reference[i]);
    }
    values += int64_t(reference.size());
    error_squares_ += error;
    reference_squares_ += squares;
    worst_row = worse(worst_row, ratio(error, squares));
}

double Difference::relative() const {
    return ratio(error_squares_, reference_squares_);
}

double worse(double a, double b) {
    return std::isnan(a) || b < a ? a : b;
}

double divergence(std::span<const float> p_logits, std::span<const float> q_logits) {
    const double p_sum = log_sum(p_logits), q_sum = log_sum(q_logits);
    double sum = 0;
    for (size_t i = 0; i < p_logits.size(); ++i) {
        const double p = p_logits[i] - p_sum, q = q_logits[i] - q_sum;
        const double mass = std::exp(p);
        if (mass != 0) sum += mass * (p - q);
    }
    return std::isnan(sum) ? sum : std::max(sum, 0.0);  // rounding may make it negative
}

int likeliest(std::span<const float> logits) {
    int best = -1;
    for (int i = 0; i < int(logits.size()); ++i)
        if (!std::isnan(logits[size_t(i)]) &&
            (best < 0 || logits[size_t(i)] > logits[size_t(best)]))
            best = i;
    return best;
}

}  // namespace aerie
