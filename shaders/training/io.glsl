// Bindings, push constants, and the rows of a workgroup.
#include "lib/io.glsl"
#include "training/training_params.h"

#define EACH_ROW(row, rows) \
    for (uint row = gl_WorkGroupID.y; row < rows; row += kMostGroups)
