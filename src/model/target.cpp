// The class for each architecture.
#include "model/target.h"

#include "core/error.h"
#include "core/float_environment.h"
#include "model/decoder_layer.h"
#include "model/tensors.h"

namespace aerie {

void check_tokens(std::span<const int> tokens, int vocab) {
    for (int token : tokens)
        if (token < 0 || token >= vocab)
            throw UsageError("token " + std::to_string(token) + " is none of the " +
                             std::to_string(vocab) + " of the model");
}

namespace {

struct Architecture {
    const char* name;
    void (*load)(const WeightLoader&, const ModelConfig&);
    std::unique_ptr<Target> (*make)(Backend&, const ModelConfig&, const Checkpoint&,
                                    std::optional<DType>, const TargetLimits&);
};
constexpr Architecture kArchitectures[] = {
    {"llama", load_llama, make_llama},   {"mistral", load_llama, make_llama},
    {"qwen2", load_llama, make_llama},   {"qwen3", load_llama, make_llama},
    {"mixtral", load_llama, make_llama}, {"qwen3_moe", load_llama, make_llama}};

const Architecture& architecture_of(const ModelConfig& config) {
    for (const Architecture& architecture : kArchitectures)
        if (config.architecture == architecture.name) return architecture;
    throw Error("no architecture named '" + config.architecture + "'");
}

}  // namespace

std::vector<TensorShape> target_tensors(const ModelConfig& config) {
    return tensors_loaded(
        config, [&](const WeightLoader& loader) { architecture_of(config).load(loader, config); });
}

std::unique_ptr<Target> make_target(Backend& be, const ModelConfig& config,
                                    const Checkpoint& checkpoint, std::optional<DType> weights,
                                    const TargetLimits& limits) {
    const FloatEnvironment environment;
    const Limits wanted = pass_limits(config, limits.rows, limits.positions);
    check_limits(wanted, be.capabilities().most, checkpoint.folder().string(),
                 be.capabilities().name);
    be.reserve(wanted);
    return architecture_of(config).make(be, config, checkpoint, weights, limits);
}

size_t target_scratch_bytes(const ModelConfig& config, const TargetLimits& limits) {
    TargetScratch scratch;
    TensorPlan plan;
    scratch.add_to(plan, config, limits.rows);
    return plan.size_bytes() + dense_bytes(DType::F32, limits.positions, config.attention.head_dim);
}

}  // namespace aerie
