// Drafters that need nothing but the text itself.
#pragma once

#include <climits>

#include "draft/drafter.h"

namespace aerie {

class StatelessDrafter : public Drafter {
  public:
    std::unique_ptr<DraftState> begin() override { return std::make_unique<State>(); }
    void observe(const Observed&) override {}

  private:
    struct State final : DraftState {
        int positions() const override { return INT_MAX; }
        void truncate(int) override {}
        std::unique_ptr<DraftState> fork(int) const override { return std::make_unique<State>(); }
        void save(SaveSink&) const override {}
        void load(SaveSource&) override {}
    };
};

}  // namespace aerie
