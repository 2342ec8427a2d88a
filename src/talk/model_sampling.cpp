#include "talk/model_sampling.h"

#include <sstream>

namespace aerie {

Sampling model_sampling(const GenerationConfig& model) {
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

std::string in_words(const Sampling& sampling) {
    const Filters& filters = sampling.filters;
    std::ostringstream words;
    if (filters.temperature == 0) {
        words << "greedy (temperature 0)";
    } else {
        words << "temperature " << filters.temperature;
        if (filters.top_k > 0) words << ", top-k " << filters.top_k;
        if (filters.top_p < 1) words << ", top-p " << filters.top_p;
        if (filters.min_p > 0) words << ", min-p " << filters.min_p;
    }
    if (sampling.penalties.repetition != 1)
        words << ", repetition penalty " << sampling.penalties.repetition;
    return words.str();
}

}  // namespace aerie
