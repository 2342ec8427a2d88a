#version 450
// SmoothL1 of rows to the goals, and its gradient.
#extension GL_GOOGLE_include_directive : require
#include "training/lanes.glsl"

PARAMS(SmoothL1Params);
WRITES(0, float, dx);
WRITES(1, float, results);  // the sum of a row's losses
READS(2, float, x);
READS(3, float, goals);
READS(4, int, target_rows);

void main() {
    EACH_ROW(row, p.rows) {
        const int target_row = target_rows[at[4] + row];
        const uint to = at[0] + row * p.dx_stride, from = at[2] + row * p.x_stride;
        if (target_row < 0) {
            EACH_COLUMN(i, p.cols) dx[to + i] = 0.0;
            continue;
        }
        const uint goal = at[3] + uint(target_row) * p.goals_stride;
        float loss = 0.0;
        EACH_COLUMN(i, p.cols) {
            const float d = x[from + i] - goals[goal + i], distance = abs(d);
            loss += distance < 1.0 ? d * d * 0.5 : distance - 0.5;
            dx[to + i] = p.weight * clamp(d, -1.0, 1.0);
        }
        loss = sum_of_lanes(loss);
        if (gl_LocalInvocationID.x == 0u) results[at[1] + row] = loss;
    }
}
