// The tensors in the files of an EAGLE-3 head, what is required of them, and the draft vocabulary
// that they describe (docs/drafting.md section 1). Errors name file and tensor.
#pragma once

#include "draft/heads/eagle3_shape.h"
#include "draft/heads/head.h"
#include "model/tensors.h"

namespace aerie {

// The target layers at whose inputs the head taps, and the columns of these taps side by side.
Taps eagle3_taps(const DraftPlan& plan);
int eagle3_features(const HeadConfig& head);

// The tensors under their published names, without d2t and t2d, which hold no weights.
std::vector<TensorShape> eagle3_tensors(const HeadConfig& head);

// Whether the head has an LM head of its own; otherwise the target's serves.
bool has_lm_head(const Checkpoint& tensors);

// check_eagle3 throws unless the head can draft for the plan's target, refuse_other_tensors if the
// files have tensors that aerie does not know.
void check_eagle3(const DraftPlan& plan);
void refuse_other_tensors(const HeadConfig& head, const Checkpoint& tensors);

// The target's id of each draft token, from d2t and t2d, which must agree. Empty if the ids are the
// same.
std::vector<int32_t> read_target_ids(const HeadConfig& head, const Checkpoint& tensors);

// The tensors of a head with random weights: no embedding, which is the target's, but d2t and t2d
// if the head's vocabulary is a part of the target's.
std::vector<NamedTensor> random_eagle3_tensors(const HeadConfig& head, DType type);
// Fills elements [first, ...) of d2t or t2d, with ids spread evenly over the target's vocabulary.
// False: the tensor is neither.
bool fill_ids(const HeadConfig& head, const NamedTensor& tensor, int64_t first,
              std::span<std::byte> out);

}  // namespace aerie
