// Op Copy: copies rows, in the type of the output.
#include <cstring>

#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const Copy& op) {
    FloatEnvironment environment;
    make_rows(op.out, op.out.cols, [&](float* to, int r) {
        std::memmove(to, row_f32(op.x, r), size_t(op.out.cols) * sizeof(float));
    });
}

}  // namespace aerie::cpu
