// The configuration of an EAGLE-3 head beside that of its layer (docs/drafting.md sections 1 and
// 2).
#pragma once

#include <string>
#include <vector>

#include "draft/heads/head_config.h"
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

inline const Eagle3Shape& eagle3_shape(const HeadConfig& head) {
    return std::any_cast<const Eagle3Shape&>(head.own);
}
inline Eagle3Shape& eagle3_shape(HeadConfig& head) {
    return std::any_cast<Eagle3Shape&>(head.own);
}

// Whether a head's config.json is that of an EAGLE-3 head.
bool is_eagle3(const Fields& fields);

// Parses the spellings of SafeAILab, SpecForge, speculators and DeepSpec, and looks for norms among
// the tensors. Throws Error naming the field.
HeadConfig eagle3_config(const ModelSource& source);
// The configuration as a config.json.
Json eagle3_json(const HeadConfig& head);

// The configuration of an EAGLE-3 head as they are commonly trained: as wide as the target, RoPE
// base 10,000, and logits of the 32,000 most frequent tokens.
HeadConfig eagle3_head_shape(const ModelConfig& target);

// The taps of a head if its file does not name them: the inputs of layers 2, n / 2 and n - 3.
std::vector<int> usual_taps(int layers);

}  // namespace aerie
