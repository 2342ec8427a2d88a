// Making a target: limits, memory, and the class of its architecture.
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

std::vector<TensorShape> target_tensors(const ModelConfig& config) {
    return tensors_loaded(config, [&](const WeightLoader& loader) { load_llama(loader, config); });
}

std::unique_ptr<Target> make_target(Backend& be, const ModelConfig& config,
                                    const Checkpoint& checkpoint, std::optional<DType> weights,
                                    const TargetLimits& limits) {
    const FloatEnvironment environment;
    const Limits wanted = pass_limits(config, limits.rows, limits.positions);
    check_limits(wanted, be.capabilities().most, checkpoint.folder().string(),
                 be.capabilities().name);
    be.reserve(wanted);
    return make_llama(be, config, checkpoint, weights, limits);
}

size_t target_scratch_bytes(const ModelConfig& config, const TargetLimits& limits) {
    TargetScratch scratch;
    TensorPlan plan;
    scratch.add_to(plan, config, limits.rows);
    return plan.size_bytes() + dense_bytes(DType::F32, limits.positions, config.attention.head_dim);
}

}  // namespace aerie
