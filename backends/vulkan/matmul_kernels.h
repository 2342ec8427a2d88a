// Chooses the shader of a matmul and its constants, by the device, the weight's type and size, and
// the number of rows of x.
#pragma once

#include "vulkan/abilities.h"
#include "vulkan/pipelines.h"

namespace aerie::vulkan {

const char* embed_shader(DType table);

struct MatmulKernel {
    Kernel kernel;
    int columns;     // rows of x per workgroup
    int strips = 1;  // strips of the weight per workgroup
};
enum class RowsOfX { all, of_experts };  // the rows of x that a weight is multiplied with
// Whether x is a single row. Kernels that otherwise take x as pairs of f16 then read floats and
// split them themselves.
constexpr bool is_row(RowsOfX which, int rows) {
    return which == RowsOfX::all && rows == 1;
}

// The epilogue of a matmul (shaders/lib/result.glsl).
enum class Epilogue : uint32_t { none, gated, rotated };
struct MatmulForm {
    Epilogue epilogue = Epilogue::none;
    bool packed = false;  // gated: the output is quantised; rotated: the cache is in f16
    bool normed = false;  // the kernel also normalises x (shaders/lib/norm_here.glsl)
};
// Whether the matmul's kernel can do this epilogue for so many rows of x.
bool finishes(const Abilities& device, DType weight, int rows, const MatmulForm& form);
// Whether the matmul's kernel can normalise a single row of `inner` columns.
bool norms(const Abilities& device, DType weight, int inner);

// Rows and columns of a weight.
struct MatrixSize {
    int outputs, inner;
};
// The kernel for `rows` rows of x. Integer dot products are exact, so a quantised weight may have
// different kernels for few and for many rows. With a float weight the order of a sum depends on
// the kernel, which is therefore the same for all numbers of rows.
MatmulKernel matmul_kernel(const Abilities& device, DType weight, RowsOfX which, int rows,
                           MatrixSize size, MatmulForm form = {});

// Whether the kernel takes x as pairs of f16 (shaders/lib/halves.glsl), unless is_row().
bool takes_halves(const Abilities& device, DType weight);
constexpr int kHalfPanel = 16;  // elements
// Number of rows of x in that form, padded.
constexpr uint32_t padded_rows(int rows) {
    return uint32_t(rows + 3) / 4 * 4;
}

}  // namespace aerie::vulkan
