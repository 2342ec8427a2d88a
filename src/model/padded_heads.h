// Attention heads of sizes that no op takes: they run as the next multiple of 16, padded with
// zeros.
//
// In q and k each half of a head is padded by itself, so that element i still pairs with the one
// half a head behind it; heads of v are padded at their end. Zeros add nothing to a dot product, so
// the output of attention begins with the elements of the true size, and o_proj reads those alone.
// The RoPE table takes up the ratio of the two scales 1 / sqrt(size); see make_rope_table.
#pragma once

#include "io/checkpoint.h"
#include "model/config.h"

namespace aerie {

// Makes `tensors` pad q, k and v when they are read, if the configuration's heads are wider than
// those of the files. The tensors must already have the names of config.json's architecture; a
// second call changes nothing. Throws Error naming a tensor with heads of another size.
void pad_heads(Checkpoint& tensors, const ModelConfig& config);

// Rows that a tensor has in the files: 0 if heads do not decide it.
int rows_in_file(const ModelConfig& config, const std::string& name);

}  // namespace aerie
