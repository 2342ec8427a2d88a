// Random decisions about tokens.
#pragma once

#include <cstdint>

#include "core/rng.h"
#include "draft/distribution.h"

namespace aerie {

class Chance {
  public:
    virtual ~Chance() = default;
    virtual bool happens(double probability) = 0;            // surely from 1 on, never at 0
    virtual int pick(const Distribution& distribution) = 0;  // which has a token
};

// By a number of [0, 1) each.
class UniformChance : public Chance {
  public:
    bool happens(double probability) override { return next() < probability; }
    int pick(const Distribution& distribution) override;

  private:
    virtual double next() = 0;
};

// The numbers of one cycle: a pure function of the text's seed, the position that follows the root
// and what they are for. No two cycles of a text have the same.
class KeyedChance final : public UniformChance {
  public:
    KeyedChance(uint64_t seed, int position, Purpose purpose)
        : seed_(seed), position_(position), purpose_(purpose) {}

  private:
    double next() override { return uniform(seed_, position_, purpose_, index_++); }

    uint64_t seed_;
    int position_;
    Purpose purpose_;
    int index_ = 0;
};

// Up to `count` tokens without replacement, in the order in which they are drawn; all there are if
// they are less.
std::vector<int> draw(Distribution distribution, int count, Chance& chance);

}  // namespace aerie
