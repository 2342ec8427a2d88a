// A mean with exponential forgetting, drawn towards a prior while its weight is small.
#pragma once

namespace aerie {

struct Estimate {
    double sum = 0, weight = 0;

    void add(double value, double by, double memory) {
        sum = sum * memory + value;
        weight = weight * memory + by;
    }
    double mean(double prior, double prior_weight) const {
        return (sum + prior_weight * prior) / (weight + prior_weight);
    }
};

}  // namespace aerie
