// An FFN of experts: router logits, the choice of experts, the gate-and-up and the down matmul of
// each chosen expert, and their weighted sum.
#include "model/experts.h"

#include "model/decoder_layer.h"

namespace aerie {

void ExpertActivations::add_to(TensorPlan& plan, const ModelConfig& config, int rows) {
    const ExpertConfig& experts = config.experts;
    if (experts.count == 0) return;
    const int places = rows * experts.chosen;
    plan.add(logits, DType::F32, rows, experts.count);
    plan.add(routing.ids, DType::I32, rows, experts.chosen);
    plan.add(routing.weights, DType::F32, rows, experts.chosen);
    plan.add(routing.order, DType::I32, 1, places);
    plan.add(routing.tiles, DType::I32, most_expert_tiles(rows, experts.chosen, experts.count),
             kExpertTileInts);
    plan.add(input, DType::F32, rows, config.hidden);
    plan.add(gate_up, DType::F32, places, 2 * experts.intermediate);
    plan.add(gated, DType::F32, places, experts.intermediate);
    plan.add(down, DType::F32, places, config.hidden);
}

Routing ExpertActivations::routing_of(int rows, const ExpertConfig& config) const {
    const int tiles = most_expert_tiles(rows, config.chosen, config.count);
    return {routing.ids.row_range(0, rows), routing.weights.row_range(0, rows),
            dense_prefix(routing.order, 1, rows * config.chosen),
            routing.tiles.row_range(0, tiles)};
}

Experts::Experts(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix)
    : config_(config.experts), activation_(config.activation) {
    const ExpertNames& names = *config_.names;
    const std::string experts = prefix + names.experts;
    router_ = loader.router({prefix + names.router, config_.count}, config.hidden);
    gate_up_ = loader.experts(
        {{experts, names.gate, config_.intermediate}, {experts, names.up, config_.intermediate}},
        config_.count, config.hidden);
    down_ =
        loader.experts({{experts, names.down, config.hidden}}, config_.count, config_.intermediate);
}

Tensor Experts::input_in(const Backend& be, Tensor scratch, int rows) const {
    return activation_in(be, scratch, *router_, rows);
}

void Experts::run(Backend& be, const Activations& scratch, SublayerOutput out, Tensor input,
                  int layer) const {
    const ExpertActivations& own = scratch.experts;
    const Routing routing = own.routing_of(input.rows, config_);
    const int places = routing.places();
    const Tensor logits = own.logits.row_range(0, input.rows);
    const Tensor gate_up = own.gate_up.row_range(0, places);
    const Tensor gated = activation_in(be, own.gated, *down_, places);
    const Tensor down = own.down.row_range(0, places);
    const auto run = [&](const char* label, const auto& op) { be.run(op, {label, layer}); };
    run("router", Matmul{logits, input, *router_});
    run("route", Route{routing, logits, config_.normalised});
    const Tensor read = activation(be, input, *gate_up_, own.input, {"experts input", layer});
    run("experts gate_up", ExpertMatmul{gate_up, read, *gate_up_, routing});
    run("experts gated", Gated{gated, gate_up, activation_});
    run("experts down", ExpertMatmul{down, gated, *down_, routing});
    run("experts", ExpertSum{out.tensor, down, routing.weights, out.accumulate});
}

}  // namespace aerie
