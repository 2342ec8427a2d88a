// Heads that read the target's feature side by side, one for each token ahead: Medusa's, and
// Hydra's, which also see the tokens in between (docs/drafting.md section 9).
#pragma once

#include <string>
#include <vector>

#include "draft/heads/head_config.h"

namespace aerie {

// The tensors of such heads, by the starts of their names: "0.0.", "hydra_mlp.2.1.".
struct ParallelHeads {
    struct Head {
        std::vector<std::string> blocks;  // each is x + silu(linear x), one after the other
        std::string lm_head;              // empty: the target's
    };
    std::vector<Head> heads;
    bool sees_path = false;   // Hydra: the first block also reads the tokens before it
    bool has_prefix = false;  // Hydra++: a decoder layer transforms the target's feature first
};

inline const ParallelHeads& parallel_heads(const HeadConfig& config) {
    return std::any_cast<const ParallelHeads&>(config.own);
}

bool is_medusa(const Checkpoint& tensors);
bool is_hydra(const Checkpoint& tensors);

// These read the tensors alone: the configuration files of such heads do not help. Throw Error.
HeadConfig medusa_config(const ModelSource& source);
HeadConfig hydra_config(const ModelSource& source);
// Copies from the target what the heads' tensors do not show.
void complete_parallel_heads(const ModelConfig& target, HeadConfig& heads);
// Throws Error for a tensor that belongs to no head.
void refuse_other_tensors(const ParallelHeads& heads, const Checkpoint& tensors);

}  // namespace aerie
