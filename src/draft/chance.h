// Random decisions about tokens: whether a draft is accepted, and which token is drawn.
#pragma once

#include <cstdint>

#include "core/rng.h"
#include "draft/distribution.h"

namespace aerie {

class Chance {
  public:
    virtual ~Chance() = default;
    virtual bool happens(double probability) = 0;            // always from 1 on, never at 0
    virtual int pick(const Distribution& distribution) = 0;  // must not be empty
};

// Makes each decision with one number that is uniform in [0, 1).
class UniformChance : public Chance {
  public:
    bool happens(double probability) override { return next() < probability; }
    int pick(const Distribution& distribution) override;

  private:
    virtual double next() = 0;
};

// The numbers of one cycle. Each is a pure function of the sequence's seed, the position that
// follows the root, the purpose and a running index, so no two cycles of a sequence share numbers.
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

// Draws up to `count` tokens without replacement and returns them in the order of drawing; fewer if
// the distribution has fewer.
std::vector<int> draw(Distribution distribution, int count, Chance& chance);

}  // namespace aerie
