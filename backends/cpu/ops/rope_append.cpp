// Op RopeAppend: rotation and cache writes, one row at a time.
#include <cassert>

#include "core/float_environment.h"
#include "cpu/backend.h"
#include "cpu/cache.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const RopeAppend& op) {
    FloatEnvironment environment;
    pool_.run(op.qkv.rows, 4.0 * op.qkv.cols, [&](int first, int last, int) {
        for (int r = first; r < last; ++r) {
            const Row& place = row_of(op.rows, r);
            if (place.slot < 0) continue;
            assert(place.position < op.rope.rows);
            const size_t slot_row = cache_row(op.kv, place.sequence, place.slot);
            kernels_.rope_append({.qkv = row_f32(op.qkv, r),
                                  .rope = row_f32(op.rope, place.position),
                                  .heads = op.shape.heads,
                                  .kv_heads = op.shape.kv_heads,
                                  .head_dim = op.shape.head_dim,
                                  .k = element(op.kv.k, slot_row, 0),
                                  .v = element(op.kv.v, slot_row, 0),
                                  .type = float_type(op.kv.k.dtype)});
        }
    });
}

}  // namespace aerie::cpu
