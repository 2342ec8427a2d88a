// Sampling as recommended by a model's own files.
#pragma once

#include "engine/sampling.h"
#include "model/config.h"

namespace aerie {

// The model's defaults if it asks for sampling; else argmax. The seed is not set.
inline Sampling model_sampling(const GenerationConfig& model) {
    Sampling sampling;
    if (!model.do_sample) return sampling;
    sampling.filters.temperature = float(model.temperature.value_or(1));
    sampling.filters.top_k = model.top_k.value_or(0);
    sampling.filters.top_p = float(model.top_p.value_or(1));
    sampling.penalties.repetition = float(model.repetition_penalty.value_or(1));
    return sampling;
}

}  // namespace aerie
