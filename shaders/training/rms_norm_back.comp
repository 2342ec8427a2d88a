#version 450
// Adds the gradient of an RMS norm's x. With y = x s w and s = (mean(x^2) + epsilon)^(-1/2) it is
// s (g - x s^2 mean(g x)), g = dout w.
#extension GL_GOOGLE_include_directive : require
#include "training/lanes.glsl"

PARAMS(RmsNormBackParams);
WRITES(0, float, dx);
READS(1, float, dout);
READS(2, float, inverse);
READS(3, float, x);
READS(4, float, weight);

void main() {
    EACH_ROW(row, p.rows) {
        const uint of_x = at[3] + row * p.x_stride, of_dout = at[1] + row * p.dout_stride;
        const uint to = at[0] + row * p.dx_stride;
        const float scale = inverse[at[2] + row * p.inverse_stride];
        float products = 0.0;
        EACH_COLUMN(i, p.cols) products += dout[of_dout + i] * weight[at[4] + i] * x[of_x + i];
        const float along = sum_of_lanes(products) * scale * scale * p.inverse_cols;
        EACH_COLUMN(i, p.cols)
            dx[to + i] += scale * (dout[of_dout + i] * weight[at[4] + i] - x[of_x + i] * along);
    }
}
