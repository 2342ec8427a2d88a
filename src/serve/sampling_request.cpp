// Turns a client's sampling values into those of the engine.
#include <random>

#include "serve/requests/problem.h"
#include "serve/service.h"
#include "talk/model_sampling.h"

namespace aerie {

Sampling sampling_of(const CompletionRequest& asked, const GenerationConfig& model) {
    Sampling sampling = model_sampling(model);
    Filters& filters = sampling.filters;
    filters.temperature = asked.temperature.value_or(filters.temperature);
    filters.top_k = asked.top_k.value_or(filters.top_k);
    filters.top_p = asked.top_p.value_or(filters.top_p);
    filters.min_p = asked.min_p.value_or(filters.min_p);
    float& repetition = sampling.penalties.repetition;
    repetition = asked.repetition_penalty.value_or(repetition);
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
