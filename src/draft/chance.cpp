// Drawing tokens by inverting the cumulative distribution.
#include "draft/chance.h"

namespace aerie {

int UniformChance::pick(const Distribution& distribution) {
    const double at = next();
    double sum = 0;
    for (size_t i = 0; i < distribution.ids.size(); ++i) {
        sum += distribution.probabilities[i];
        if (at < sum) return distribution.ids[i];
    }
    return distribution.ids.back();  // reached only if rounding left the sum below `at`
}

std::vector<int> draw(Distribution distribution, int count, Chance& chance) {
    std::vector<int> tokens;
    while (int(tokens.size()) < count && !distribution.empty()) {
        tokens.push_back(chance.pick(distribution));
        if (int(tokens.size()) < count) distribution.remove(tokens.back());
    }
    return tokens;
}

}  // namespace aerie
