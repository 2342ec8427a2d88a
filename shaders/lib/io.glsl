// Bindings and push constants. A tensor begins at word at[i] of binding i.
#include "params.h"

#define READS(i, type, name) \
    layout(binding = i, std430) readonly buffer Binding##i { type name[]; }
#define WRITES(i, type, name) layout(binding = i, std430) buffer Binding##i { type name[]; }
#define PARAMS(type)                              \
    layout(push_constant, std430) uniform Push { \
        uint at[10];                               \
        type p;                                   \
    }
