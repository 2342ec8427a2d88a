// A layer of experts: a router chooses a few of them for each row (Mixtral of Experts, section 2.1;
// Qwen3, section 2).
#pragma once

#include "backend/tensor_plan.h"
#include "model/config.h"
#include "model/ffn.h"
#include "model/weights.h"

namespace aerie {

// Scratch of a pass of up to `rows` rows. A row has one place per expert that it chooses.
struct ExpertActivations {
    void add_to(TensorPlan& plan, const ModelConfig& config, int rows);
    Routing routing_of(int rows, const ExpertConfig& config) const;

    Tensor logits;  // [rows, experts]
    Routing routing;
    Tensor input;    // input of a matmul: [rows, hidden]
    Tensor gate_up;  // [places, 2 * intermediate]
    Tensor gated;    // input of a matmul: [places, intermediate]
    Tensor down;     // [places, hidden]
};

class Experts final : public Ffn {
  public:
    // prefix: "model.layers.3.".
    Experts(const WeightLoader& loader, const ModelConfig& config, const std::string& prefix);
    // Float values: the router reads them, and the experts' input is made of them.
    Tensor input_in(const Backend& be, Tensor scratch, int rows) const override;
    Consumers consumers() const override { return {}; }
    void run(Backend& be, const Activations& scratch, SublayerOutput out, Tensor input,
             int layer) const override;

  private:
    ExpertConfig config_;
    Activation activation_;
    std::unique_ptr<Weight> router_;
    std::unique_ptr<Weight> gate_up_;  // two stacks: the gate and the up matrices of all experts
    std::unique_ptr<Weight> down_;
};

}  // namespace aerie
