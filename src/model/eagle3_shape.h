// The configuration of an EAGLE-3 head beside that of its layer (docs/drafting.md sections 1 and
// 2).
#pragma once

#include <string>
#include <vector>

#include "model/config_fields.h"

namespace aerie {

struct Eagle3Shape {
    int vocab = 0;          // rows of its LM head
    int target_hidden = 0;  // columns of a tapped hidden state
    // Layers of the target with inputs that the head reads, ascending; empty: usual_taps.
    // `taps_rule` says in words how they were found.
    std::vector<int> taps;
    std::string taps_rule;
    bool norms_taps = false;      // fc_norm: each tap has a norm of its own
    bool norms_features = false;  // norm_before_fc: one norm for all taps together
    bool norms_residual = false;  // norm_before_residual: the residual is the normed feature
    bool norms_state = false;     // norm_output: the state that is fed back is normed

    int tap_count() const { return taps.empty() ? 3 : int(taps.size()); }
};

// Whether a head's config.json is that of an EAGLE-3 head.
bool is_eagle3(const Fields& fields);

// Parses the spellings of SafeAILab, SpecForge, speculators and DeepSpec. `hidden` is that of the
// head's layer, `vocab` that of its target. Throws Error naming the field.
Eagle3Shape parse_eagle3(const Fields& fields, int hidden, int vocab);

// The taps of a head if its file does not name them: the inputs of layers 2, n / 2 and n - 3.
std::vector<int> usual_taps(int layers);

}  // namespace aerie
