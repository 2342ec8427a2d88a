// The class for each architecture.
#include "model/target.h"

#include "core/error.h"
#include "core/float_environment.h"
#include "model/decoder_layer.h"

namespace aerie {

void check_tokens(std::span<const int> tokens, int vocab) {
    for (int token : tokens)
        if (token < 0 || token >= vocab)
            throw UsageError("token " + std::to_string(token) + " is none of the " +
                             std::to_string(vocab) + " of the model");
}

std::unique_ptr<Target> make_target(Backend& be, const ModelConfig& config,
                                    const Checkpoint& checkpoint, std::optional<DType> weights,
                                    const TargetLimits& limits) {
    const FloatEnvironment environment;
    const Limits wanted = pass_limits(config, limits.rows, limits.positions);
    check_limits(wanted, be.capabilities().most, checkpoint.folder().string(),
                 be.capabilities().name);
    be.reserve(wanted);
    for (const char* llama : {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe"})
        if (config.architecture == llama)
            return make_llama(be, config, checkpoint, weights, limits);
    throw Error("no architecture named '" + config.architecture + "'");
}

size_t target_scratch_bytes(const ModelConfig& config, const TargetLimits& limits) {
    TargetScratch scratch;
    TensorPlan plan;
    scratch.add_to(plan, config, limits.rows);
    return plan.size_bytes() + dense_bytes(DType::F32, limits.positions, config.attention.head_dim);
}

}  // namespace aerie
