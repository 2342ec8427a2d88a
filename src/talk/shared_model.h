// A loaded model that several talks share, from any number of threads. Talks that are stepped at
// the same time share the passes of the device.
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

// A sequence of a shared model. Everything is guarded by mutex().
struct OpenSequence {
    Sequence* sequence = nullptr;
    bool is_answering = false;
    uint64_t last_use = 0;  // later ones have larger numbers
};

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
    int64_t cache_tokens() const { return limits_.cache_tokens; }  // as in BatchLimits
    const Identity& identity() const;  // computed by the first call; throws Error
    bool can_draft() const { return options().draft.method != kNoDrafts; }

    Rounds& rounds() { return rounds_; }  // locks mutex() itself
    const PassCounts& pass_counts() const { return batch_.counts(); }
    int used_pages() const { return kv_.used_pages(); }
    int pages() const { return kv_.pages(); }

    // Everything below may only be used while holding mutex().
    FairMutex& mutex() { return mutex_; }
    Model& model() { return *model_; }
    Backend& backend() { return model_->backend(); }
    Sequence make_sequence();  // throws Error if there are as many as allowed
    // Frees pages of the KV cache until so many are free, as far as that is possible without this
    // sequence's: what was computed for other texts is computed again when they need it.
    void free_pages(int count, Sequence* kept);
    // A sequence that lives until it is taken out, and whose pages may be freed.
    void add(OpenSequence& sequence) {
        note_use(sequence);
        open_.push_back(&sequence);
    }
    void take_out(OpenSequence& sequence) { std::erase(open_, &sequence); }
    void note_use(OpenSequence& sequence) { sequence.last_use = ++uses_; }
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
    bool drop_unused(std::span<Sequence* const> kept, bool even_answering);

    const std::unique_ptr<Model> model_;
    const Tokenizer tokenizer_;
    const std::vector<int> eos_ids_;
    const Capabilities device_;
    const BatchLimits limits_;
    std::unique_ptr<Drafter> drafter_;
    const LearnedCosts costs_;
    KvPool kv_;
    Batch batch_;
    FairMutex mutex_;
    std::vector<OpenSequence*> open_;
    uint64_t uses_ = 0;
    Rounds rounds_{mutex_, options().sequences_in_pass};
    std::atomic<double> last_use_ = steady_seconds();
    mutable std::once_flag identified_;
    mutable Identity identity_;
};

}  // namespace aerie
