// The prompts of bench/data/acceptance.txt, in its order.
#pragma once

#include "engine/bundled.h"

namespace aerie::test {

// The order mixes the kinds of prompts, so that a short replay meets all of them.
inline std::vector<std::string> recorded_prompts() {
    const auto prompts = sixty_prompts();
    constexpr size_t kStep = 23;  // visits each of the sixty once
    std::vector<std::string> mixed;
    for (size_t i = 0; i < prompts.size(); ++i)
        mixed.push_back(prompts[i * kStep % prompts.size()]);
    return mixed;
}

}  // namespace aerie::test
