// Loads what a session needs, and no more.
#include "engine/bench_model.h"

#include <algorithm>

#include "backend/registry.h"

namespace aerie {

namespace {

SessionLimits limits_of(const ModelFiles& files, const RuntimeOptions& options) {
    return {files.context, options.kv, options.prefill_rows};
}

}  // namespace

BenchModel::BenchModel(ModelFiles files, const RuntimeOptions& options)
    : BenchModel(std::move(files), options,
                 open_device(options.device, {.threads = options.threads,
                                              .cache = options.cache,
                                              .profile = options.profile,
                                              .on_progress = options.on_progress})) {}

BenchModel::BenchModel(ModelFiles files, const RuntimeOptions& options,
                       std::unique_ptr<Backend> backend)
    : files_(std::move(files)), options_(options), backend_(std::move(backend)) {
    const SessionLimits limits = limits_of(files_, options_);
    files_.reserve(options_, *backend_);
    if (options.on_progress) options.on_progress("loading " + files_.checkpoint.folder().string());
    target_ = make_target(*backend_, files_.config, files_.checkpoint, options.weights,
                          target_limits(limits));
}

BenchModel::Drafting BenchModel::with(std::unique_ptr<Drafter> drafter) {
    Drafting result;
    result.drafter = std::move(drafter);
    result.session = std::make_unique<Session>(*backend_, *target_, *result.drafter,
                                               limits_of(files_, options_));
    return result;
}

BenchModel::Drafting BenchModel::with(const DraftOptions& options) {
    return with(make_eagle(
        {*backend_, *target_, *files_.head_config, *files_.head_checkpoint, files_.draft_weights,
         options_.kv, files_.context, std::max(options_.prefill_rows, kMaxNodes)},
        options));
}

size_t BenchModel::pass_bytes() const {
    size_t bytes = files_.plan(options_, *backend_).target_weights;
    if (files_.config.tied_embeddings) return bytes;
    const Weight& embedding = target_->embedding();
    for (const WeightSegment& segment : embedding.segments)
        bytes -= dense_bytes(segment.dtype, segment.rows, embedding.cols);
    return bytes;
}

}  // namespace aerie
