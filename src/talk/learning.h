// The part that learns while a model is used (src/train), as talks and servers see it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "draft/drafter.h"

namespace aerie {

class Learning {
  public:
    virtual ~Learning() = default;
    // The head that drafts for this owner now (AnswerOptions::head); null: the model's own. Texts
    // of one owner are never used for another.
    virtual std::shared_ptr<const DraftWeights> head(const std::string& owner) = 0;
    // Takes an answer that was given to this owner, to learn from it in idle time. Returns at once.
    virtual void learn(const std::string& owner, std::span<const int> prompt,
                       std::span<const int> answer) noexcept = 0;
};

}  // namespace aerie
