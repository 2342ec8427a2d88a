// An element-wise shader: an invocation has a column of some rows.
#include "training/io.glsl"

layout(local_size_x = 64) in;
