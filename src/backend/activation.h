// The functions that a gated FFN applies to its gate.
#pragma once

namespace aerie {

enum class Activation { silu };

}  // namespace aerie
