// Which shader multiplies by a weight, and with which constants: a function of the device, the
// type, its size and the number of rows of x.
#pragma once

#include "vulkan/abilities.h"
#include "vulkan/pipelines.h"

namespace aerie::vulkan {

const char* embed_shader(DType table);

struct MatmulKernel {
    Kernel kernel;
    int columns;     // rows of x that a workgroup has
    int strips = 1;  // of the weight that it has
};
enum class RowsOfX { all, of_experts };  // that a weight meets
// One row of floats, which kernels that else take halves cut themselves.
constexpr bool is_row(RowsOfX which, int rows) {
    return which == RowsOfX::all && rows == 1;
}

// What else a kernel does that multiplies (shaders/lib/result.glsl, norm_here.glsl).
enum class Finish : uint32_t { none, gated, rotated };
struct MatmulForm {
    Finish finish = Finish::none;
    bool packed = false;  // what is gated is quantised; the cache of what is rotated is of f16
    bool normed = false;  // x is, too
};
bool finishes(const Abilities& device, DType weight, int rows, const MatmulForm& form);
// One row of so many columns.
bool norms(const Abilities& device, DType weight, int inner);

// `rows` of x. Integer products are exact, so few rows may be multiplied in another way than many.
// The order of a sum of floats depends on the kernel, which is therefore the same for all numbers
// of rows.
struct MatrixSize {
    int outputs, inner;
};
MatmulKernel matmul_kernel(const Abilities& device, DType weight, RowsOfX which, int rows,
                           MatrixSize size, MatmulForm form = {});

// Whether x comes in two f16 a number, as lib/halves.glsl has it, unless it is_row.
bool takes_halves(const Abilities& device, DType weight);
constexpr int kHalfPanel = 16;  // elements
// Rows that there is room for then.
constexpr uint32_t padded_rows(int rows) {
    return uint32_t(rows + 3) / 4 * 4;
}

}  // namespace aerie::vulkan
