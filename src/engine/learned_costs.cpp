// The key of a cache entry names everything that the costs depend on.
#include "engine/learned_costs.h"

#include <algorithm>

#include "engine/costs.h"

namespace aerie {

namespace {

// Everything about a model that its speed depends on.
std::string shape_key(const ModelConfig& config, const WeightTypes& types) {
    std::string key = config.architecture;
    for (int size : {config.layers, config.hidden, config.intermediate, config.attention.heads,
                     config.attention.kv_heads, config.attention.head_dim, config.vocab,
                     config.experts.count, config.experts.chosen, config.experts.intermediate})
        key += " " + std::to_string(size);
    return key + " " + to_string(types);
}

std::string cost_key(Model& model) {
    const Capabilities& device = model.backend().capabilities();
    const ModelFiles& files = model.files();
    std::string head = files.head_config
                           ? "head " + shape_key(*files.head_config, model.draft_weights())
                           : model.options().draft.method;
    for (const ModelFiles& other : files.others) head += " + " + shape_key(*other.head_config, {});
    return device.name + "; " + device.description + "; target " +
           shape_key(files.config, model.weights()) + "; " + head + "; kv " +
           aerie::name(model.options().kv);
}

// If rounds differ by a larger factor, something else ran during the measurement.
constexpr double kMaxSpread = 1.3;

// Measures again if the first measurement was disturbed, and takes the steadier of both.
MeasuredCosts steady_costs(Session& session, CostAware& drafter, const LoadOptions& options) {
    const auto say = [&](const char* line) {
        if (options.on_progress) options.on_progress({LoadProgress::Stage::costs, line});
    };
    say("measuring this device");
    MeasuredCosts costs = measure_costs(session, drafter, kMeasureSeconds);
    if (costs.spread <= kMaxSpread) return costs;
    say("measuring this device again: it was busy");
    MeasuredCosts again = measure_costs(session, drafter, kMeasureSeconds);
    return again.spread < costs.spread ? again : costs;
}

}  // namespace

LearnedCosts::LearnedCosts(Model& model, Model::Drafting& drafting) {
    if (CostAware* drafter = drafting.drafter->cost_aware())
        *this = LearnedCosts(model, *drafter, *drafting.session);
}

LearnedCosts::LearnedCosts(Model& model, CostAware& drafter, Session& session)
    : drafter_(&drafter) {
    const LoadOptions& options = model.options();
    // Measured points reach as far as the drafter's trees do.
    const std::string key = cost_key(model) + "; trees of " +
                            std::to_string(std::min(session.logits().rows, kMaxNodes)) +
                            " rows, levels of " + std::to_string(drafter.widest_level());
    if (!options.cache.empty()) file_ = cost_file(options.cache, key);
    auto costs = options.cache.empty() ? std::nullopt : read_costs(options.cache, key);
    // An earlier session may have had no room for the long text.
    if (costs && costs->per_key.empty() && has_room_for_long_text(session)) costs.reset();
    if (!costs) {
        costs = steady_costs(session, drafter, options);
        // A measurement that was disturbed twice is not kept, so the next start measures again; nor
        // is one behind less text than a longer context allows.
        const int usual = std::min(kUsualContext, model.files().config.context);
        const bool is_usual = costs->spread <= kMaxSpread && session.context() >= usual;
        if (!options.cache.empty() && is_usual) write_costs(options.cache, key, *costs);
    }
    drafter.set_costs(*costs);
}

void LearnedCosts::review() const {
    constexpr double kFarOff = 2;
    std::error_code ignored;
    if (drafter_ && !file_.empty() && drafter_->cost_correction() > kFarOff)
        std::filesystem::remove(file_, ignored);
}

}  // namespace aerie
