// Op GatherRows: copies the rows that `index` names.
#include <cassert>
#include <cstring>

#include "cpu/backend.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const GatherRows& op) {
    const int32_t* chosen = row<int32_t>(op.index, 0);
    for (int r = 0; r < op.out.rows; ++r) {
        assert(chosen[r] >= 0 && chosen[r] < op.x.rows);
        std::memmove(row_f32(op.out, r), row_f32(op.x, chosen[r]),
                     size_t(op.out.cols) * sizeof(float));
    }
}

}  // namespace aerie::cpu
