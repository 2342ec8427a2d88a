#include "talk/model_sampling.h"

#include <sstream>

namespace aerie {

std::string in_words(const Sampling& sampling) {
    const Filters& filters = sampling.filters;
    std::ostringstream words;
    if (filters.temperature == 0) {
        words << "the likeliest token";
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
