// Sampling where the user does not ask for another one.
#pragma once

#include "engine/sampling.h"
#include "model/config.h"

namespace aerie {

// The model's own sampling, as its files recommend it: values that they leave out are off, and
// do_sample false makes the temperature 0. Files without any of these values get temperature 0.7
// and top-p 0.95. The seed is not set.
Sampling model_sampling(const GenerationConfig& model);

// The same in words: "temperature 0.7, top-p 0.95", "greedy (temperature 0)".
std::string in_words(const Sampling& sampling);

}  // namespace aerie
