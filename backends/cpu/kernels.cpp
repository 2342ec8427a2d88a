// The table of kernels of one instruction set.
#include "cpu/isa_kernels.h"

namespace aerie::cpu::AERIE_ISA {

extern const Kernels kernels = {
    .convert = convert,
    .matmul = matmul,
    .pack_columns = pack_columns,
    .matmul_quant = matmul_quant,
    .quantise = quantise,
    .pack_weights = pack_weights,
    .rms_norm = rms_norm,
    .rope_append = rope_append,
    .attention = attention,
    .attend_to_chunks = attend_to_chunks,
    .merge_chunks = merge_chunks,
    .gated = gated,
    .add = add,
    .noise = noise,
    .argmax = argmax,
    .argmax_noise = argmax_noise,
    .perturb = perturb,
    .exp_sum = exp_sum,
    .exp_all = exp_all,
    .ids_between = ids_between,
    .remove_below = remove_below,
    .best = best,
};

}  // namespace aerie::cpu::AERIE_ISA
