// Op KvCompact: moves accepted rows of the cache down.
#include <cstring>

#include "cpu/backend.h"
#include "cpu/cache.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const KvCompact& op) {
    for (const KvLayer& kv : op.layers)
        for (int i = 0; i < op.moves.rows; ++i) {
            const KvMove& move = *row<KvMove>(op.moves, i);
            const size_t source = cache_row(kv, move.sequence, move.from);
            const size_t target = cache_row(kv, move.sequence, move.to);
            if (source == target) continue;
            for (const Tensor& cache : {kv.k, kv.v})
                std::memcpy(element(cache, target, 0), element(cache, source, 0),
                            size_bytes(cache.dtype, size_t(cache.cols)));
        }
}

}  // namespace aerie::cpu
