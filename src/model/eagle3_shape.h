// What an EAGLE-3 head has beside its layer (eagle.md sections 1 and 2).
#pragma once

#include <string>
#include <vector>

#include "model/config_fields.h"

namespace aerie {

struct Eagle3Shape {
    int vocab = 0;          // of its logits
    int target_hidden = 0;  // columns of a tapped state
    // Layers of the target whose inputs it reads, ascending; empty: usual_taps. How they were
    // found, in words.
    std::vector<int> taps;
    std::string taps_rule;
    bool norms_taps = false;      // fc_norm: each tap by a norm of its own
    bool norms_features = false;  // norm_before_fc: all taps together by one
    bool norms_residual = false;  // norm_before_residual: the layer adds to what its norm gives
    bool norms_state = false;     // norm_output: children read what the LM head does, normed

    int tap_count() const { return taps.empty() ? 3 : int(taps.size()); }
};

// Whether a head's config.json is that of an EAGLE-3 head.
bool is_eagle3(const Fields& fields);

// In the spellings of SafeAILab, SpecForge, speculators and DeepSpec. `hidden` and `vocab`: of the
// head's layer and of its target. Throws Error naming the field.
Eagle3Shape parse_eagle3(const Fields& fields, int hidden, int vocab);

// What a head reads whose file does not say: the inputs of layers 2, n / 2 and n - 3.
std::vector<int> usual_taps(int layers);

}  // namespace aerie
