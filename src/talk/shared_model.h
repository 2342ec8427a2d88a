// A loaded model that several talks share, from any number of threads: the device works for one of
// them at a time, a step each.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/fair_mutex.h"
#include "engine/model.h"
#include "measure/learned_costs.h"
#include "talk/identity.h"
#include "text/tokenizer.h"

namespace aerie {

class SharedModel {
  public:
    // Loads it, and learns what trees cost on the device where they are chosen by that. There is
    // room for as many talks as LoadOptions::sequences says. Throws Error, UsageError.
    explicit SharedModel(const LoadOptions& options);
    SharedModel(ModelFiles files, const LoadOptions& options);
    // On this device, whatever the options name.
    SharedModel(const LoadOptions& options, std::unique_ptr<Backend> backend);
    SharedModel(const SharedModel&) = delete;  // its parts know each other
    SharedModel& operator=(const SharedModel&) = delete;

    // What does not change is for any thread, without waiting.
    const ModelFiles& files() const { return model_->files(); }
    const LoadOptions& options() const { return model_->options(); }
    const Capabilities& device() const { return device_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    const std::vector<int>& eos_ids() const { return eos_ids_; }
    int context() const { return limits_.context; }
    const Identity& identity() const;  // looked up when it is asked for first; throws Error
    bool can_draft() const { return options().draft.method != kNoDrafts; }

    // All else is for who has the turn.
    FairMutex& turns() { return turns_; }
    Backend& backend() { return model_->backend(); }
    Sequence make_text();  // throws Error if there are as many as there may be
    Batch& batch() { return batch_; }
    Drafter& drafter() { return *drafter_; }
    KvPool& kv() { return kv_; }

    // After the work: whether what was learned of the device still holds.
    void review_costs() const { costs_.review(); }

  private:
    explicit SharedModel(std::unique_ptr<Model> model);

    const std::unique_ptr<Model> model_;
    const Tokenizer tokenizer_;
    const std::vector<int> eos_ids_;
    const Capabilities device_;
    const BatchLimits limits_;
    std::unique_ptr<Drafter> drafter_;
    const LearnedCosts costs_;
    KvPool kv_;
    Batch batch_;
    FairMutex turns_;
    mutable std::once_flag identified_;
    mutable Identity identity_;
};

}  // namespace aerie
