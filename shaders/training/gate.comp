#version 450
// silu(gate) * up; a row of the input is all gates, then all ups.
#extension GL_GOOGLE_include_directive : require
#include "training/elements.glsl"
#include "lib/arithmetic.glsl"

PARAMS(GateParams);
WRITES(0, float, result);
READS(1, float, gate_up);

void main() {
    const uint column = gl_GlobalInvocationID.x;
    if (column >= p.cols) return;
    EACH_ROW(row, p.rows) {
        const uint from = at[1] + row * p.gate_up_stride + column;
        result[at[0] + row * p.out_stride + column] = silu(gate_up[from]) * gate_up[from + p.cols];
    }
}
