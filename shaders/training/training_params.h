// Push constants of the training shaders, which follow the offsets of their bindings. This file is
// compiled as GLSL and as C++. Strides are in elements, which are f32.
#ifdef __cplusplus
#pragma once
#include <cstdint>
namespace aerie::vulkan {
using uint = uint32_t;
#endif

const uint kMostGroups = 65535;  // workgroups along y; each goes on with the rows kMostGroups below
const uint kTileSide = 64;       // rows and columns that a workgroup of multiply has
const uint kSummedColumns = 16;  // columns that a workgroup of column_sums has
const uint kAttendedSide = 32;   // rows that a workgroup of attention has
const uint kAttendedColumns = 128;  // most columns of a head that it has

struct FillParams {
    uint rows, cols, out_stride;
    float value;
};

struct AddRowsParams {
    uint rows, cols, out_stride;
    uint x_stride;  // 0: the same row for all
};

struct ColumnSumsParams {
    uint rows, cols, x_stride;
    uint other_stride, inverse_stride;  // for the gradient of a norm's weight
};

struct MoveRowsParams {
    uint rows, cols, out_stride, x_stride;
};

struct RmsNormParams {
    uint rows, cols, out_stride, inverse_stride, x_stride;
    float inverse_cols, epsilon;
};

struct RmsNormBackParams {
    uint rows, cols, dx_stride, dout_stride, inverse_stride, x_stride;
    float inverse_cols;
};

struct RotateParams {
    uint rows, pairs;  // pairs: of all heads of a row
    uint half_dim, x_stride;
    uint back;
};

struct MultiplyParams {
    uint rows, cols, inner;
    uint out_stride;
    uint a_row, a_inner, b_inner, b_col;  // strides of a [rows, inner] and b [inner, cols]
    uint accumulates;
};

struct AttendParams {
    uint rows, group, head_dim;  // group: query heads per kv head
    uint out_stride, lse_stride, q_stride, keys_stride, values_stride;
    float scale;
};

struct HeadDotsParams {
    uint rows, head_dim;
    uint dots_stride, a_stride, b_stride;
};

struct AttendBackParams {
    uint rows, group, head_dim;
    uint dq_stride, dkeys_stride, dvalues_stride;
    uint dout_stride, lse_stride, along_stride;
    uint q_stride, keys_stride, values_stride;
    float scale;
};

struct GateParams {
    uint rows, cols, out_stride, gate_up_stride;
};

struct GateBackParams {
    uint rows, cols, dgate_up_stride, dout_stride, gate_up_stride;
};

struct CrossEntropyParams {
    uint rows, cols, logits_stride, targets_stride;
    float weight;
};

struct SmoothL1Params {
    uint rows, cols, dx_stride, x_stride, goals_stride;
    float weight;
};

struct SquaresParams {
    uint rows, cols, x_stride;
};

struct UpdateParams {
    uint rows, cols, weight_stride, gradient_stride, mean_stride, square_stride;
    float rate, decay, epsilon, clip;
    float beta1, beta2;
    float rest1, rest2;              // 1 - beta
    float mean_scale, square_scale;  // 1 / (1 - beta^step)
};

#ifdef __cplusplus
}  // namespace aerie::vulkan
#endif
