#version 450
// The gradient of silu(gate) * up. silu'(x) = s (1 + x (1 - s)), with s = 1 / (1 + exp(-x)).
#extension GL_GOOGLE_include_directive : require
#include "training/elements.glsl"
#include "lib/arithmetic.glsl"

PARAMS(GateBackParams);
WRITES(0, float, dgate_up);
READS(1, float, dout);
READS(2, float, gate_up);

void main() {
    const uint column = gl_GlobalInvocationID.x;
    if (column >= p.cols) return;
    EACH_ROW(row, p.rows) {
        const uint from = at[2] + row * p.gate_up_stride + column;
        const uint to = at[0] + row * p.dgate_up_stride + column;
        const float d = dout[at[1] + row * p.dout_stride + column];
        const float gate = gate_up[from], s = 1.0 / (1.0 + exp_of(-gate));
        dgate_up[to] = d * gate_up[from + p.cols] * s * (1.0 + gate * (1.0 - s));
        dgate_up[to + p.cols] = d * gate * s;
    }
}
