// Loads what is asked for, and nothing twice.
#include "engine/model.h"

#include "backend/registry.h"
#include "core/error.h"
#include "model/loading.h"

namespace aerie {

Model::Model(ModelFiles files, const LoadOptions& options)
    : Model(std::move(files), options,
            open_device(options.device, {.threads = options.threads,
                                         .cache = options.cache,
                                         .profile = options.profile,
                                         .on_progress = options.on_progress})) {}

Model::Model(ModelFiles files, const LoadOptions& options, std::unique_ptr<Backend> backend)
    : files_(std::move(files)), options_(options), backend_(std::move(backend)) {
    files_.reserve(options_, *backend_);
    if (options.on_progress) options.on_progress("loading " + files_.target.path.string());
    target_ = make_target(*backend_, files_.config, files_.target.tensors, options.weights,
                          target_limits(limits()));
}

std::unique_ptr<Drafter> Model::drafter(const DraftOptions& options, const BatchLimits& limits) {
    const DraftMethod& method = draft_method(options.method);
    if (method.needs == DraftNeeds::head && !files_.head)
        throw UsageError("--draft " + method.name + " needs a head");
    const DraftPlan plan = files_.draft_plan(options, options_, limits);
    DraftSource source{*backend_, *target_, plan, nullptr};
    if (method.load) {
        std::shared_ptr<const DraftWeights>& weights = draft_weights_[method.load];
        if (!weights) {
            if (options_.on_progress) options_.on_progress("loading " + files_.head->path.string());
            weights = load_draft_weights(source);
        }
        source.weights = weights;
    }
    return make_drafter(source);
}

Model::Drafting Model::with(std::unique_ptr<Drafter> drafter, const BatchLimits& limits) {
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
