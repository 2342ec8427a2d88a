// Costs of passes on this device, for drafters that choose by them: from the user's cache, else
// measured now.
#pragma once

#include <filesystem>

#include "engine/model.h"

namespace aerie {

class LearnedCosts {
  public:
    // For a drafter without costs.
    LearnedCosts() = default;
    // Gives the drafter its costs. The session, which uses this drafter, forgets its text.
    LearnedCosts(Model& model, CostAware& drafter, Session& session);
    // The same, if the drafter needs costs.
    LearnedCosts(Model& model, Model::Drafting& drafting);
    // To be called after the work. If its timings show that the cached costs were far off, such as
    // after a measurement on a busy machine, the next start measures again.
    void review() const;

  private:
    const CostAware* drafter_ = nullptr;
    std::filesystem::path file_;  // empty: nothing is kept
};

}  // namespace aerie
