// The device memory and limits of a batch.
#include "engine/batch.h"

#include <algorithm>

namespace aerie {

KvShape kv_shape(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach) {
    return {config.layers, config.kv_columns(), limits.kv, limits.context + reach.nodes,
            limits.sequences()};
}

TargetLimits target_limits(const BatchLimits& limits) {
    return {limits.pass_rows(), limits.context + kMaxDepth + 1};
}

size_t batch_bytes(const ModelConfig& config, const BatchLimits& limits, const DraftReach& reach) {
    BatchTensors tensors;
    TensorPlan plan;
    tensors.add_to(plan, config, limits, reach);
    return plan.size_bytes();
}

Limits backend_limits(const ModelConfig& config, const BatchLimits& limits) {
    return pass_limits(config, limits.pass_rows(), limits.context + kMaxNodes);
}

void BatchTensors::add_to(TensorPlan& plan, const ModelConfig& config, const BatchLimits& limits,
                          const DraftReach& reach) {
    const int nodes = limits.texts * reach.nodes, depths = reach.depth + 1;
    const int pass_rows = std::max(limits.prefill_rows, nodes);
    const int feature_columns = int(reach.taps.size()) * config.hidden;
    plan.add(rows, DType::I32, pass_rows, kRowInts);
    plan.add(features, DType::F32, pass_rows, feature_columns);
    plan.add(logits, DType::F32, nodes, config.vocab);
    plan.add(ids, DType::I32, 1, nodes);
    plan.add(rules, DType::I32, nodes, kRowChoiceInts);
    plan.add(seen, DType::I32, limits.sequences(), config.vocab);
    plan.add(noise, DType::F32, limits.sequences() * depths, config.vocab);
    plan.add(noise_copy, DType::F32, 1, config.vocab);
    plan.add(accepted, DType::I32, 1, limits.texts * depths * (kKvMoveInts + 1));
    texts.resize(size_t(limits.sequences()));
    for (SequenceTensors& text : texts) {
        plan.add(text.accepted_features, DType::F32, depths, feature_columns);
        plan.add(text.rule, DType::I32, 1, kRowChoiceInts);
        plan.add(text.noise_positions, DType::I32, 1, depths);
    }
}

}  // namespace aerie
