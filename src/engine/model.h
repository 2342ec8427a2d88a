// A loaded model: a backend, the target's weights, and the weights of its drafters.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "engine/model_files.h"
#include "engine/session.h"

namespace aerie {

class Model {
  public:
    // Throws Error naming the faulty file. `files` may be random.
    Model(ModelFiles files, const LoadOptions& options);
    // Uses this device instead of the one that the options name.
    Model(ModelFiles files, const LoadOptions& options, std::unique_ptr<Backend> backend);
    Model(const Model&) = delete;  // the target refers to the files
    Model& operator=(const Model&) = delete;

    Backend& backend() { return *backend_; }
    Target& target() { return *target_; }
    const ModelFiles& files() const { return files_; }
    const LoadOptions& options() const { return options_; }
    BatchLimits limits() const { return files_.limits(options_); }

    // Makes a drafter. Its weights are loaded once, however many drafters use them. Throws Error,
    // UsageError. See LoadOptions::on_unfit_head, which also changes the method of options().
    std::unique_ptr<Drafter> drafter(const DraftOptions& options, const BatchLimits& limits);

    // The weights of another head, for Drafter::use_head. Throws Error unless it is a head of the
    // same kind and shape as the model's own, which must not be random.
    std::shared_ptr<const DraftWeights> load_head(const std::filesystem::path& head);

    // A drafter and a session with it.
    struct Drafting {
        std::unique_ptr<Drafter> drafter;
        std::unique_ptr<Session> session;
    };
    Drafting start_session(std::unique_ptr<Drafter> drafter, const BatchLimits& limits);
    Drafting start_session(std::unique_ptr<Drafter> drafter) {
        return start_session(std::move(drafter), limits());
    }
    Drafting start_session(const DraftOptions& options, const BatchLimits& limits) {
        return start_session(drafter(options, limits), limits);
    }
    Drafting start_session(const DraftOptions& options) { return start_session(options, limits()); }

    WeightTypes weights() const { return files_.target_types(options_); }
    WeightTypes draft_weights() const { return files_.draft_types(options_); }
    // Bytes of weights that a target pass over one row reads: all except an embedding that is only
    // looked up, and experts that are not chosen.
    size_t pass_bytes() const;

  private:
    std::shared_ptr<const DraftWeights> load_drafts(const DraftOptions& options);

    ModelFiles files_;
    LoadOptions options_;
    std::unique_ptr<Backend> backend_;
    std::unique_ptr<Target> target_;
    std::map<std::string, std::shared_ptr<const DraftWeights>> draft_weights_;  // by name
};

}  // namespace aerie
