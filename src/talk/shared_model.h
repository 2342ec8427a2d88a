// A loaded model that several talks share, from any number of threads. Talks that are stepped at the
// same time share the passes of the device.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/fair_mutex.h"
#include "engine/learned_costs.h"
#include "engine/model.h"
#include "talk/identity.h"
#include "talk/rounds.h"
#include "text/tokenizer.h"

namespace aerie {

class SharedModel {
  public:
    // Loads the model, and measures the costs of trees on the device if the drafter chooses by
    // them. There is room for LoadOptions::sequences talks. Throws Error, UsageError.
    explicit SharedModel(const LoadOptions& options);
    // The same, for callers that have opened the model's files and loaded its tokenizer already.
    SharedModel(ModelFiles files, Tokenizer tokenizer, const LoadOptions& options);
    // Uses this device instead of the one that the options name.
    SharedModel(const LoadOptions& options, std::unique_ptr<Backend> backend);
    SharedModel(const SharedModel&) = delete;  // its parts refer to each other
    SharedModel& operator=(const SharedModel&) = delete;

    // These never change, so any thread may read them without waiting.
    const ModelFiles& files() const { return model_->files(); }
    const LoadOptions& options() const { return model_->options(); }
    const Capabilities& device() const { return device_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    const std::vector<int>& eos_ids() const { return eos_ids_; }
    int context() const { return limits_.context; }
    const Identity& identity() const;  // computed by the first call; throws Error
    bool can_draft() const { return options().draft.method != kNoDrafts; }

    Rounds& rounds() { return rounds_; }  // takes the turns itself
    const PassCounts& pass_counts() const { return batch_.counts(); }
    int used_pages() const { return kv_.used_pages(); }
    int pages() const { return kv_.pages(); }

    // Everything below may only be used while holding turns().
    FairMutex& turns() { return turns_; }
    Model& model() { return *model_; }
    Backend& backend() { return model_->backend(); }
    Sequence make_sequence();  // throws Error if there are as many as allowed
    Batch& batch() { return batch_; }
    Drafter& drafter() { return *drafter_; }
    KvPool& kv() { return kv_; }

    // Marks that an answer goes on now; and the time since then, which any thread may ask for.
    void note_use() { last_use_ = steady_seconds(); }
    double idle_seconds() const { return steady_seconds() - last_use_; }

    // To be called after the work: checks whether the measured costs still hold.
    void review_costs() const { costs_.review(); }

  private:
    explicit SharedModel(std::unique_ptr<Model> model);
    SharedModel(std::unique_ptr<Model>&& model, Tokenizer tokenizer);

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
    Rounds rounds_{turns_, options().together};
    std::atomic<double> last_use_ = steady_seconds();
    mutable std::once_flag identified_;
    mutable Identity identity_;
};

}  // namespace aerie
