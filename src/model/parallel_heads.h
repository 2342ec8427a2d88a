// Heads that stand beside each other on the target's feature, one for each token ahead: Medusa's,
// and Hydra's, which see the tokens between, too (eagle.md section 9).
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint.h"

namespace aerie {

struct ModelConfig;

// Which tensors they are made of, by the begins of their names: "0.0.", "hydra_mlp.2.1.".
struct ParallelHeads {
    struct Head {
        std::vector<std::string> blocks;  // x + silu(linear x), one after the other
        std::string lm_head;              // empty: the target's
    };
    std::vector<Head> heads;
    bool sees_path = false;   // Hydra: the first block reads the tokens before, too
    bool has_prefix = false;  // Hydra++: a decoder layer makes another feature of the target's
};

bool is_medusa(const Checkpoint& tensors);
bool is_hydra(const Checkpoint& tensors);

// Of their tensors alone: their configuration does not tell it. Throws Error.
ModelConfig parallel_head_config(const Checkpoint& tensors);
// The rest is as their target has it.
void complete_parallel_heads(const ModelConfig& target, ModelConfig& heads);
// That each tensor is one of theirs. Throws Error.
void refuse_other_tensors(const ParallelHeads& heads, const Checkpoint& tensors);

}  // namespace aerie
