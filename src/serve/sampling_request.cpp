// Turns a client's sampling values into those of the engine.
#include <random>

#include "serve/requests/problem.h"
#include "serve/service.h"

namespace aerie {

Sampling sampling_of(const CompletionRequest& asked, const GenerationConfig& model) {
    const GenerationConfig defaults = model.do_sample ? model : GenerationConfig();
    Sampling sampling;
    sampling.filters.temperature =
        asked.temperature.value_or(float(defaults.temperature.value_or(1)));
    sampling.filters.top_k = asked.top_k.value_or(defaults.top_k.value_or(0));
    sampling.filters.top_p = asked.top_p.value_or(float(defaults.top_p.value_or(1)));
    sampling.filters.min_p = asked.min_p.value_or(0);
    sampling.penalties.repetition =
        asked.repetition_penalty.value_or(float(defaults.repetition_penalty.value_or(1)));
    sampling.penalties.frequency = asked.frequency_penalty;
    sampling.penalties.presence = asked.presence_penalty;
    sampling.seed = asked.seed ? *asked.seed : std::random_device()();
    check_sampling(sampling);
    return sampling;
}

LogitEdit bias_edit(std::vector<std::pair<int, float>> biases, int vocab) {
    for (const auto& [token, bias] : biases)
        if (token >= vocab)
            throw bad_request("logit_bias has a token that the model does not know", "logit_bias");
    if (biases.empty()) return {};
    return [biases = std::move(biases)](std::span<const int>, std::span<float> logits) {
        for (const auto& [token, bias] : biases) logits[size_t(token)] += bias;
    };
}

}  // namespace aerie
