// Choices after drawn trees, made on the host by rejection sampling.
#include "core/error.h"
#include "engine/batch.h"
#include "engine/ratio.h"

namespace aerie {

// `first` is the cycle's first row in the pass.
void Batch::choose_by_ratio(Cycle& cycle, int first) {
    const Drawn& drawn = cycle.drawn;
    const auto target = [&](int node) {
        be_.read(t_.logits.row_range(first + node, 1), logits_.data());
        Distribution p = processed(logits_, drawn.rule, path_tokens(cycle.tree, node));
        if (p.empty()) throw Error(kOnlyNan);
        return p;
    };
    KeyedChance chance(drawn.seed, drawn.position, Purpose::accept);
    cycle.choices = choices_by_ratio(cycle.tree, drawn, target, chance);
}

}  // namespace aerie
