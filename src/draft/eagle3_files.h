// What the files of an EAGLE-3 head must hold, and what they say of its vocabulary (eagle.md
// section 1). All of it throws Error naming file and tensor.
#pragma once

#include "draft/head.h"

namespace aerie {

// Layers of the target whose inputs it reads, and columns of those beside each other.
Taps eagle3_taps(const DraftPlan& plan);
int eagle3_features(const ModelConfig& head);

// Whether it has an LM head of its own; else the target's serves.
bool has_lm_head(const Checkpoint& tensors);

// That it can draft for the plan's target, and has no tensors that nobody knows.
void check_eagle3(const DraftPlan& plan);
void refuse_other_tensors(const ModelConfig& head, const Checkpoint& tensors);

// The target's id of each of the head's (d2t and t2d, which must agree); empty: they are the same.
std::vector<int32_t> read_target_ids(const ModelConfig& head, const Checkpoint& tensors);

}  // namespace aerie
