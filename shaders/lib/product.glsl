// Shared by the shaders of matmul: what they read and write, and how a sum becomes a result.
#include "lib/half.glsl"
#include "lib/io.glsl"

#if defined(EXPERTS)
PARAMS(ExpertMatmulParams);
#else
PARAMS(MatmulParams);
#endif
#if !defined(X_WORDS)
#define X_WORDS uint  // the words of x that a load reads
#endif
WRITES(0, uint, product);
READS(1, X_WORDS, x);
READS(2, uvec4, weight);
#include "lib/weight.glsl"

// Rows of x are the columns of the product. Workgroups of the same strip are neighbours: the cache
// has the strip for all but the first of them.
#if defined(EXPERTS)
// The columns are some places of a tile, and the strips are those of the tile's expert.
READS(3, uint, order);
READS(4, uint, tiles);

const uint kTileWords = 3u;  // ExpertTile of backend/routing.h: expert, first, count
shared uint tile_places[64], tile_rows[64];
uint column_count, expert_strip;

// Finds the workgroup's columns, at most `columns`; returns false if it has none. All invocations
// call it.
bool begin_columns(uint columns) {
    uint from = at[4] + gl_WorkGroupID.x / p.tile_parts * kTileWords;
    uint done = gl_WorkGroupID.x % p.tile_parts * columns, count = tiles[from + 2u];
    uint number = p.first + tiles[from];
    if (done >= count || number >= p.count) return false;
    column_count = min(columns, count - done);
    expert_strip = number * ((p.rows + kStripRows - 1u) / kStripRows);
    uint invocations = gl_WorkGroupSize.x * gl_WorkGroupSize.y;
    for (uint c = gl_LocalInvocationIndex; c < columns; c += invocations) {
        uint place = order[at[3] + tiles[from + 1u] + done + min(c, column_count - 1u)];
        tile_places[c] = place;
        tile_rows[c] = place / p.each;
    }
    barrier();
    return true;
}

uint weight_strip(uint i) {
    return expert_strip + i;
}

uint column_row(uint c) {
    return tile_rows[c];
}
#else
READS(3, float, bias);

uint first_column;

bool begin_columns(uint columns) {
    first_column = gl_WorkGroupID.x * columns;
    return true;
}

uint weight_strip(uint i) {
    return i;
}

// The row of x that is column c. Columns beyond the last are copies of it and are not written.
uint column_row(uint c) {
    return min(first_column + c, p.columns - 1u);
}
#endif

// The first word of column c in x.
uint column_at(uint c) {
    return at[1] + column_row(c) * p.x_stride;
}

#if defined(QUANTISED)
// Words of an I8G32 group of x: a scale, the sums of both halves, the quantised values.
const uint kGroupX = 10u, kStepWord = 2u;

// The term that a group adds to the sum of a column (core/quant.h). `steps` are the weight's scale
// and min, `whole` its integer scales. `dots` are dot products of codes, of both halves of the
// group or of all of it; codes are higher by kOffset than the quantised values.
const bool kUsesSums = kHasLeast || kOffset > 0u;
float term_of(vec2 steps, ivec2 whole, ivec2 dots, uint x_scale, uint x_sums) {
    int first = int(x_sums << 16) >> 16, second = int(x_sums) >> 16, sum = first + second;
    if (kOffset > 0u) dots -= int(kOffset) * (kInHalves ? ivec2(first, second) : ivec2(sum, 0));
    precise float scale = steps.x * uintBitsToFloat(x_scale);
    int dot = dots.x * whole.x;
    if (kInHalves) dot += dots.y * whole.y;
    precise float term = float(dot) * scale;
    if (kHasLeast) {
        precise float least = steps.y * uintBitsToFloat(x_scale);
        precise float less = float(sum * whole.y) * least;
        term = term - less;
    }
    return term;
}
#else
const uint kGroupX = kGroupElements;
#endif

#if defined(EXPERTS)
bool has_column(uint c) {
    return c < column_count;
}

uint place_of(uint row, uint c) {
    return at[0] + tile_places[c] * p.out_stride + row;
}
#else
bool has_column(uint c) {
    return first_column + c < p.columns;
}

uint place_of(uint row, uint c) {
    return at[0] + (first_column + c) * p.out_stride + row;
}
#endif

// Loads what the epilogue adds to a sum: `held`, the present output if it accumulates, and `more`,
// the bias. Called early, so that the loads are not waited for. A row beyond the last is a copy of
// it.
void ask_for(out float held, out float more, uint row, uint c) {
    held = more = 0.0;
#if !defined(EXPERTS)
    row = min(row, p.rows - 1u);
    if (p.accumulates != 0u && has_column(c)) held = uintBitsToFloat(product[place_of(row, c)]);
    if (p.has_bias != 0u) more = bias[at[3] + row];
#endif
}

// The same for four rows.
void ask_for(out vec4 held, out vec4 more, uint row, uint c) {
    held = more = vec4(0.0);
#if !defined(EXPERTS)
    if (p.accumulates != 0u)
        [[unroll]] for (uint j = 0u; j < 4u; ++j)
            held[j] = uintBitsToFloat(product[place_of(min(row + j, p.rows - 1u), c)]);
    if (p.has_bias != 0u)
        [[unroll]] for (uint j = 0u; j < 4u; ++j) more[j] = bias[at[3] + min(row + j, p.rows - 1u)];
#endif
}

float with_bias(float sum, float bias) {
    precise float total = sum;
#if !defined(EXPERTS)
    if (p.has_bias != 0u) total = total + bias;
#endif
    return total;
}

void write_sum(uint row, uint c, float sum, float held, float more) {
    if (row >= p.rows || !has_column(c)) return;
    precise float total = with_bias(sum, more);
#if !defined(EXPERTS)
    if (p.accumulates != 0u) total = held + total;
#endif
    product[place_of(row, c)] = floatBitsToUint(total);
}

// The same, but loads what it adds itself.
void write_sum(uint row, uint c, float sum) {
    float held, more;
    ask_for(held, more, row, c);
    write_sum(row, c, sum, held, more);
}
