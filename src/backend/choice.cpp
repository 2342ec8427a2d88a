#include "backend/choice.h"

#include <algorithm>
#include <cmath>

#include "core/float_environment.h"

namespace aerie {

RowChoice::RowChoice(const Filters& filters, const Penalties& penalties)
    : temperature(filters.temperature),
      top_k(filters.top_k),
      top_p(filters.top_p),
      repetition(penalties.repetition),
      frequency(penalties.frequency),
      presence(penalties.presence) {
    const FloatEnvironment environment;
    if (temperature == 0) return;
    scale = float(std::min(1 / double(temperature), 3e38));
    if (!(filters.min_p > 0)) return;
    min_p_cutoff = double(temperature) * std::log(std::min(double(filters.min_p), 1.0));
    cutoff_high = float(min_p_cutoff);
    cutoff_low = float(min_p_cutoff - double(cutoff_high));
}

}  // namespace aerie
