// Loads the weights of the target and of drafters, each at most once.
#include "engine/model.h"

#include <algorithm>

#include "backend/registry.h"
#include "core/error.h"
#include "draft/heads/head.h"
#include "model/tensors.h"

namespace aerie {

namespace {

// Reports how much of a model is loaded, as long as this object lives.
class LoadReports {
  public:
    LoadReports(LoadProgress::Stage stage, ModelSource& source, const LoadOptions& options)
        : stage_(stage),
          what_("loading " + source.path.string()),
          tensors_(source.tensors),
          all_(tensors_.size_bytes()),
          show_(options.on_progress) {
        if (!show_) return;
        show_({stage_, what_, 0, all_});
        tensors_.on_loaded = [this](size_t bytes) { report(std::min(done_ + bytes, all_)); };
    }
    ~LoadReports() { tensors_.on_loaded = nullptr; }
    LoadReports(const LoadReports&) = delete;
    LoadReports& operator=(const LoadReports&) = delete;

    // To be called when everything is loaded: some tensors are too small to be reported.
    void finish() {
        if (show_ && done_ < all_) report(all_);
    }

  private:
    void report(size_t done) {
        done_ = done;
        show_({stage_,
               what_ + ": " + std::to_string(done_ >> 20) + " of " + std::to_string(all_ >> 20) +
                   " MiB",
               done_, all_});
    }

    const LoadProgress::Stage stage_;
    const std::string what_;
    Checkpoint& tensors_;
    const size_t all_;
    size_t done_ = 0;
    const std::function<void(const LoadProgress&)> show_;
};

}  // namespace

Model::Model(ModelFiles files, const LoadOptions& options)
    : Model(std::move(files), options, with_cause(Cause::no_device, [&] {
                return open_device(options.device, {.threads = options.threads,
                                                    .cache = options.cache,
                                                    .profile = options.profile,
                                                    .on_progress = options.on_device_progress()});
            })) {}

Model::Model(ModelFiles files, const LoadOptions& options, std::unique_ptr<Backend> backend)
    : files_(std::move(files)), options_(options), backend_(std::move(backend)) {
    files_.replace_unstorable(*backend_);
    files_.fit_context(options_, *backend_);
    files_.reserve(options_, *backend_);
    LoadReports reports(LoadProgress::Stage::model, files_.target, options);
    target_ = make_target(*backend_, files_.config, files_.target.tensors, options.weights,
                          target_limits(limits()));
    reports.finish();
}

std::unique_ptr<Drafter> Model::drafter(const DraftOptions& options, const BatchLimits& limits) {
    const DraftMethod& method = draft_method(options.method);
    const bool needs_head =
        method.needs == DraftNeeds::head || method.needs == DraftNeeds::language_model;
    if (needs_head && !files_.head)
        throw UsageError("--draft " + method.name + " needs a head or a draft model");
    std::shared_ptr<const DraftWeights> weights;
    if (method.load && files_.head) {
        try {
            weights = load_drafts(options);
        } catch (const Error& error) {
            if (!options_.on_unfit_head) throw;
            options_.on_unfit_head(error.what());
            files_.head.reset();
            files_.head_config.reset();
            files_.others.clear();
            DraftOptions without = options;
            without.method = options_.draft.method = default_draft_method(nullptr, options).name;
            return drafter(without, limits);
        }
    }
    const DraftPlan plan = files_.draft_plan(options, options_, limits);
    return make_drafter({*backend_, *target_, plan, std::move(weights)});
}

// The weights are shared, so they must fit every later drafter of this model.
std::shared_ptr<const DraftWeights> Model::load_drafts(const DraftOptions& options) {
    std::shared_ptr<const DraftWeights>& weights =
        draft_weights_[draft_method(options.method).weights];
    if (weights) return weights;
    LoadReports reports(LoadProgress::Stage::head, *files_.head, options_);
    const DraftPlan whole = files_.draft_plan(options, options_, limits());
    weights = load_draft_weights({*backend_, *target_, whole, nullptr});
    reports.finish();
    return weights;
}

std::shared_ptr<const DraftWeights> Model::load_head(const std::filesystem::path& head) {
    LoadOptions options = options_;
    options.head = head;
    options.more_heads.clear();
    if (!files_.head || !files_.head_config->kind->random.config_json)
        throw UsageError("the model has no draft head that another could replace");
    ModelFiles files = ModelFiles::open(options);
    files.replace_unstorable(*backend_);
    const HeadConfig& ours = *files_.head_config;
    HeadConfig& theirs = *files.head_config;
    theirs.context = ours.context;
    theirs.eos_ids = ours.eos_ids;
    const auto shape_of = [](const HeadConfig& config) {
        return config.kind->random.config_json(config).dump();
    };
    if (ours.kind != theirs.kind || shape_of(ours) != shape_of(theirs))
        throw Error(head.string() + ": this head has another shape than " +
                    files_.head->path.string());
    const DraftPlan plan = files.draft_plan(options.draft, options, limits());
    return theirs.kind->load({*backend_, *target_, plan, nullptr});
}

Model::Drafting Model::start_session(std::unique_ptr<Drafter> drafter, const BatchLimits& limits) {
    Drafting result;
    result.drafter = std::move(drafter);
    result.session = std::make_unique<Session>(*backend_, *target_, *result.drafter, limits);
    return result;
}

size_t Model::pass_bytes() const {
    size_t bytes = files_.plan(options_, *backend_).target_weights;
    if (const ExpertConfig& experts = files_.config.experts; experts.count > 0) {
        std::vector<TensorShape> all = target_tensors(files_.config);
        std::erase_if(all, [](const TensorShape& tensor) { return tensor.stack.empty(); });
        const size_t of_one =
            sum(matrix_bytes(files_.target.tensors, all, options_.weights)) / size_t(experts.count);
        bytes -= of_one * size_t(experts.count - experts.chosen);
    }
    if (files_.config.tied_embeddings) return bytes;
    const Weight& embedding = target_->embedding();
    for (const WeightSegment& segment : embedding.segments)
        bytes -= dense_bytes(segment.dtype, segment.rows, embedding.cols);
    return bytes;
}

}  // namespace aerie
