// What the shaders of matmul share: what they read and write, and how a sum becomes a result.
#include "lib/half.glsl"
#include "lib/io.glsl"
#include "lib/weight.glsl"

PARAMS(MatmulParams);
WRITES(0, float, product);
READS(1, uint, x);
READS(2, uvec4, weight);
READS(3, float, bias);

uint first_column;  // rows of x are the columns of a product

// Where a column of x begins; those beyond the last repeat it and are not written.
uint column_at(uint c) {
    return at[1] + min(first_column + c, p.columns - 1u) * p.x_stride;
}

#if defined(QUANTISED)
const uint kPanelX = 9u;  // words of x that a panel meets
#else
const uint kPanelX = kPanelElements;
#endif

#if defined(QUANTISED)
float scale_of(uint panel, uint lane) {
    uvec4 quad = weight[panel + kPanelQuads * kStripRows + lane / 8u];
    uint word = quad[lane / 2u % 4u];
    return half_value(word >> (lane % 2u * 16u) & 0xffffu);
}
#endif

void write_sum(uint row, uint c, float sum) {
    if (row >= p.rows || first_column + c >= p.columns) return;
    uint to = at[0] + (first_column + c) * p.out_stride + row;
    precise float total = sum;
    if (p.has_bias != 0u) total = total + bias[at[3] + row];
    if (p.accumulates != 0u) total = product[to] + total;
    product[to] = total;
}
