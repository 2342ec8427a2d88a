// A model as benchmarks and comparisons use it: without a tokenizer, with any drafter.
#pragma once

#include <memory>

#include "engine/runtime.h"

namespace aerie {

// A model to measure: one target, any number of drafters and sessions over it.
class BenchModel {
  public:
    // Throws Error. `files` may be random (ModelFiles::random).
    BenchModel(ModelFiles files, const RuntimeOptions& options);
    // On this device, whatever the options name.
    BenchModel(ModelFiles files, const RuntimeOptions& options, std::unique_ptr<Backend> backend);
    BenchModel(const BenchModel&) = delete;  // the target refers to the files
    BenchModel& operator=(const BenchModel&) = delete;

    struct Drafting {
        std::unique_ptr<Drafter> drafter;
        std::unique_ptr<Session> session;
    };
    Drafting with(std::unique_ptr<Drafter> drafter);
    Drafting with(const DraftOptions& options);  // the model must have a head

    Backend& backend() { return *backend_; }
    Target& target() { return *target_; }
    const ModelFiles& files() const { return files_; }
    const RuntimeOptions& options() const { return options_; }
    WeightTypes weights() const { return files_.target_types(options_); }
    WeightTypes draft_weights() const { return files_.head_types(options_); }
    // Bytes of weights that a target pass streams: all but an embedding that is only looked up.
    size_t pass_bytes() const;

  private:
    ModelFiles files_;
    RuntimeOptions options_;
    std::unique_ptr<Backend> backend_;
    std::unique_ptr<Target> target_;
};

}  // namespace aerie
