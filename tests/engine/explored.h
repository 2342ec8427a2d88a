// Sources of chance that take every possible way, one after the other.
#pragma once

#include <algorithm>
#include <vector>

#include "draft/chance.h"

namespace aerie::test {

// The decisions of a run, by number. After a run next_way() moves on to another way.
class Ways {
  public:
    // Picks one of `count` outcomes.
    size_t decide(size_t count) {
        if (at_ == ways_.size()) ways_.push_back({0, count});
        return ways_[at_++].taken;
    }
    bool next_way() {
        at_ = 0;
        while (!ways_.empty() && ways_.back().taken + 1 == ways_.back().count) ways_.pop_back();
        if (ways_.empty()) return false;
        ++ways_.back().taken;
        return true;
    }

  private:
    struct Way {
        size_t taken, count;
    };
    std::vector<Way> ways_;
    size_t at_ = 0;
};

// Exact: weight() is the probability of the way that was taken.
class ExploredChance final : public Chance {
  public:
    bool happens(double probability) override {
        const double yes = std::clamp(probability, 0.0, 1.0);
        if (yes == 0 || yes == 1) return yes == 1;
        const bool is_taken = ways_.decide(2) == 0;
        weight_ *= is_taken ? yes : 1 - yes;
        return is_taken;
    }
    int pick(const Distribution& distribution) override {
        const size_t taken = ways_.decide(distribution.ids.size());
        weight_ *= distribution.probabilities[taken];
        return distribution.ids[taken];
    }
    double weight() const { return weight_; }
    bool next_way() {
        weight_ = 1;
        return ways_.next_way();
    }

  private:
    Ways ways_;
    double weight_ = 1;
};

// The real rule over the numbers 0, 1/N, ..., (N - 1)/N.
class GridChance : public UniformChance {
  public:
    explicit GridChance(int steps) : steps_(steps) {}
    double weight() const { return weight_; }
    bool next_way() {
        weight_ = 1;
        return ways_.next_way();
    }

  protected:
    double next() override {
        weight_ /= steps_;
        return double(ways_.decide(size_t(steps_))) / steps_;
    }

  private:
    int steps_;
    Ways ways_;
    double weight_ = 1;
};

}  // namespace aerie::test
