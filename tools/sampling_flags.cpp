// How the target chooses tokens: each value by its flag, else by the model's own default.
#include <algorithm>
#include <random>
#include <type_traits>

#include "commands.h"
#include "talk/model_sampling.h"

namespace aerie {

Sampling sampling_of(const SamplingOptions& options, const GenerationConfig& model) {
    Sampling sampling = model_sampling(model);
    const auto set = [](auto& value, const auto& flag) {
        if (flag) value = std::remove_reference_t<decltype(value)>(*flag);
    };
    set(sampling.filters.temperature, options.temperature);
    if (options.top_k) sampling.filters.top_k = std::max(int(*options.top_k), 0);  // -1 is off
    set(sampling.filters.top_p, options.top_p);
    set(sampling.filters.min_p, options.min_p);
    set(sampling.penalties.repetition, options.repetition_penalty);
    set(sampling.penalties.frequency, options.frequency_penalty);
    set(sampling.penalties.presence, options.presence_penalty);
    sampling.seed = options.seed ? *options.seed : std::random_device()();
    check_sampling(sampling);
    return sampling;
}

}  // namespace aerie
