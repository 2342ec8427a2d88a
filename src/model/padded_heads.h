// Attention heads of sizes that no op takes: they run as the next multiple of 16, with zeros in the
// place of what is not there.
//
// Rows of q and k are spread half by half, so that element i still turns with the one half a head
// behind it; those of v are followed by zeros. Zeros add nothing to a dot product, so what
// attention gives begins with the elements of the true size, and o_proj reads those alone. Cosines
// and sines take the ratio of the two scales 1 / sqrt(size); see make_rope_table.
#pragma once

#include "io/checkpoint.h"
#include "model/config.h"

namespace aerie {

// Has the tensors of q, k and v read as they run, where the configuration's heads are wider than
// those of the files. To be called once the tensors have the names of config.json's architecture;
// a second time changes nothing. Throws Error naming a tensor of other heads.
void pad_heads(Checkpoint& tensors, const ModelConfig& config);

}  // namespace aerie
