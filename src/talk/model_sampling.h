// Sampling where the user does not ask for another one.
#pragma once

#include "engine/sampling.h"
#include "model/config.h"

namespace aerie {

// The model's own sampling, as its files recommend it: values that they leave out are off, and
// do_sample false makes the temperature 0. Files without any of these values get temperature 0.7
// and top-p 0.95. The seed is not set.
inline Sampling model_sampling(const GenerationConfig& model) {
    Sampling sampling;
    const bool is_silent =
        model.do_sample != false && !model.temperature && !model.top_k && !model.top_p;
    sampling.filters.temperature = float(model.temperature.value_or(is_silent ? 0.7 : 1));
    sampling.filters.top_k = model.top_k.value_or(0);
    sampling.filters.top_p = float(model.top_p.value_or(is_silent ? 0.95 : 1));
    sampling.penalties.repetition = float(model.repetition_penalty.value_or(1));
    if (model.do_sample == false) sampling.filters.temperature = 0;
    return sampling;
}

// The same in words: "temperature 0.7, top-p 0.95", "the likeliest token".
std::string in_words(const Sampling& sampling);

}  // namespace aerie
