#version 450
// Cross-entropy of rows of logits to rows of targets; each row of logits becomes its gradient.
#extension GL_GOOGLE_include_directive : require
#include "training/lanes.glsl"
#include "lib/arithmetic.glsl"

PARAMS(CrossEntropyParams);
WRITES(0, float, logits);
WRITES(1, float, results);  // a row's loss, and 1 if it is a hit
READS(2, float, targets);
READS(3, int, target_rows);

shared uint places[128];

// The place of the largest value of all invocations, the first one of equal values; the value is
// lanes[0].
uint place_of_largest(float own, uint place) {
    const uint t = gl_LocalInvocationID.x;
    barrier();
    lanes[t] = own;
    places[t] = place;
    for (uint others = 64u; others > 0u; others /= 2u) {
        barrier();
        if (t >= others) continue;
        const uint i = t + others;
        if (lanes[i] > lanes[t] || (lanes[i] == lanes[t] && places[i] < places[t])) {
            lanes[t] = lanes[i];
            places[t] = places[i];
        }
    }
    barrier();
    return places[0];
}

#define PLACE_OF_LARGEST(found, from, begin)             \
    uint found;                                          \
    {                                                    \
        float most = -kInfinity;                         \
        uint place = p.cols;                             \
        EACH_COLUMN(i, p.cols) if (from[begin + i] > most) { \
            most = from[begin + i];                      \
            place = i;                                   \
        }                                                \
        found = place_of_largest(most, place);           \
    }

void lose(uint row, uint z, uint target) {
    PLACE_OF_LARGEST(wanted, targets, target)
    PLACE_OF_LARGEST(best, logits, z)
    const float largest = lanes[0];
    float sum = 0.0, mass = 0.0, dot = 0.0;
    EACH_COLUMN(i, p.cols) {
        const float logit = logits[z + i] - largest, target_mass = targets[target + i];
        sum += exp_of(logit);
        mass += target_mass;
        dot += target_mass * logit;
    }
    sum = sum_of_lanes(sum);
    mass = sum_of_lanes(mass);
    dot = sum_of_lanes(dot);
    if (gl_LocalInvocationID.x == 0u) {
        results[at[1] + 2u * row] = mass * log(sum) - dot;
        results[at[1] + 2u * row + 1u] = best == wanted ? 1.0 : 0.0;
    }
    const float scale = mass / sum;
    EACH_COLUMN(i, p.cols)
        logits[z + i] = p.weight * (scale * exp_of(logits[z + i] - largest) - targets[target + i]);
}

void main() {
    EACH_ROW(row, p.rows) {
        const uint z = at[0] + row * p.logits_stride;
        const int target_row = target_rows[at[3] + row];
        if (target_row >= 0)
            lose(row, z, at[2] + uint(target_row) * p.targets_stride);
        else
            EACH_COLUMN(i, p.cols) logits[z + i] = 0.0;
    }
}
