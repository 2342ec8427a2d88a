// What passes cost on this device, for drafters that choose by it: those of the user's cache, else
// measured now.
#pragma once

#include <filesystem>

#include "engine/model.h"

namespace aerie {

class LearnedCosts {
  public:
    // Of a drafter that wants none.
    LearnedCosts() = default;
    // Gives the drafter its costs. The session, which is one with it, forgets its text.
    LearnedCosts(Model& model, CostAware& drafter, Session& session);
    // The same, if the drafter wants any.
    LearnedCosts(Model& model, Model::Drafting& drafting);
    // After the work: where its timings say that the cached costs were far off, as after a
    // measurement on a busy machine, the next start measures again.
    void review() const;

  private:
    const CostAware* drafter_ = nullptr;
    std::filesystem::path file_;  // empty: nothing is kept
};

}  // namespace aerie
