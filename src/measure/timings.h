// Durations of one operation, measured several times.
#pragma once

#include <algorithm>
#include <vector>

#include "core/clock.h"

namespace aerie {

class Timings {
  public:
    void add(double seconds) { values_.push_back(seconds); }
    void add(const Timings& more) {
        values_.insert(values_.end(), more.values_.begin(), more.values_.end());
    }
    int runs() const { return int(values_.size()); }
    const std::vector<double>& values() const { return values_; }

    // All four are 0 without a run.
    double mean() const {
        double sum = 0;
        for (double value : values_) sum += value;
        return values_.empty() ? 0 : sum / double(values_.size());
    }
    double median() const {
        if (values_.empty()) return 0;
        std::vector<double> sorted = values_;
        std::sort(sorted.begin(), sorted.end());
        const size_t middle = sorted.size() / 2;
        return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
    double min() const {
        return values_.empty() ? 0 : *std::min_element(values_.begin(), values_.end());
    }
    double max() const {
        return values_.empty() ? 0 : *std::max_element(values_.begin(), values_.end());
    }

  private:
    std::vector<double> values_;
};

constexpr double kRepeatSeconds = 0.03;  // time for repeating a short operation in a round

}  // namespace aerie
