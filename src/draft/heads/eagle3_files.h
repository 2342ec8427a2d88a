// Requirements on the files of an EAGLE-3 head, and the draft vocabulary that they describe
// (docs/drafting.md section 1). All functions throw Error naming file and tensor.
#pragma once

#include "draft/heads/head.h"

namespace aerie {

// The target layers at whose inputs the head taps, and the columns of these taps side by side.
Taps eagle3_taps(const DraftPlan& plan);
int eagle3_features(const ModelConfig& head);

// Whether the head has an LM head of its own; otherwise the target's serves.
bool has_lm_head(const Checkpoint& tensors);

// check_eagle3 throws unless the head can draft for the plan's target, refuse_other_tensors if the
// files have tensors that aerie does not know.
void check_eagle3(const DraftPlan& plan);
void refuse_other_tensors(const ModelConfig& head, const Checkpoint& tensors);

// The target's id of each draft token, from d2t and t2d, which must agree. Empty if the ids are the
// same.
std::vector<int32_t> read_target_ids(const ModelConfig& head, const Checkpoint& tensors);

}  // namespace aerie
