#include "talk/shared_model.h"

#include <algorithm>

#include "engine/costs.h"

namespace aerie {

namespace {

// Costs are measured with a small session: one sequence, and no more context than that takes.
LearnedCosts learn_costs(Model& model, Drafter& drafter, BatchLimits limits) {
    limits.open_sequences = 1;
    limits.cache_tokens = 0;
    limits.context = std::min(limits.context, kMeasureContext);
    if (!drafter.cost_aware()) return {};
    Session session(model.backend(), model.target(), drafter, limits);
    return LearnedCosts(model, *drafter.cost_aware(), session);
}

}  // namespace

SharedModel::SharedModel(const LoadOptions& options)
    : SharedModel(std::make_unique<Model>(ModelFiles::open(options), options)) {}

SharedModel::SharedModel(ModelFiles files, Tokenizer tokenizer, const LoadOptions& options)
    : SharedModel(std::make_unique<Model>(std::move(files), options), std::move(tokenizer)) {}

SharedModel::SharedModel(const LoadOptions& options, std::unique_ptr<Backend> backend)
    : SharedModel(std::make_unique<Model>(ModelFiles::open(options), options, std::move(backend))) {
}

SharedModel::SharedModel(std::unique_ptr<Model> model)
    : SharedModel(std::move(model), load_tokenizer(model->files())) {}

SharedModel::SharedModel(std::unique_ptr<Model>&& model, Tokenizer tokenizer)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      eos_ids_(aerie::eos_ids(model_->files(), tokenizer_)),
      device_(model_->backend().capabilities()),
      limits_(model_->limits()),
      drafter_(model_->drafter(options().draft, limits_)),
      costs_(learn_costs(*model_, *drafter_, limits_)),
      kv_(model_->backend(), kv_shape(model_->files().config, limits_, drafter_->reach())),
      batch_(model_->backend(), model_->target(), kv_, *drafter_, limits_) {
    batch_.on_full([this](std::span<Sequence* const> kept, bool even_answering) {
        return drop_unused(kept, even_answering);
    });
}

const Identity& SharedModel::identity() const {
    std::call_once(identified_, [this] { identity_ = identity_of(files(), options(), device_); });
    return identity_;
}

Sequence SharedModel::make_sequence() {
    return Sequence(kv_, *drafter_, model_->files().config.vocab, limits_.context);
}

bool SharedModel::drop_unused(std::span<Sequence* const> kept, bool even_answering) {
    const OpenSequence* oldest = nullptr;
    for (const OpenSequence* one : open_) {
        if (one->sequence->pages().slots() == 0 || (one->is_answering && !even_answering)) continue;
        if (std::find(kept.begin(), kept.end(), one->sequence) != kept.end()) continue;
        if (!oldest || one->last_use < oldest->last_use) oldest = one;
    }
    if (oldest) oldest->sequence->forget();
    return oldest != nullptr;
}

void SharedModel::free_pages(int count, Sequence* kept) {
    while (kv_.free_pages() < count && drop_unused({&kept, 1}, true)) {
    }
}

}  // namespace aerie
