// What the shaders of matmul share: what they read and write, and how a sum becomes a result.
#include "lib/half.glsl"
#include "lib/io.glsl"

#if defined(EXPERTS)
PARAMS(ExpertMatmulParams);
#else
PARAMS(MatmulParams);
#endif
#if !defined(X_WORDS)
#define X_WORDS uint  // that are read at a time
#endif
WRITES(0, uint, product);
READS(1, X_WORDS, x);
READS(2, uvec4, weight);
#include "lib/weight.glsl"

// Rows of x are the columns of a product. Workgroups of the same strip are neighbours: the cache
// has it for all but the first.
#if defined(EXPERTS)
// They are some places of a tile, and the strips are those of its expert.
READS(3, uint, order);
READS(4, uint, tiles);

const uint kTileWords = 3u;  // as backend/routing.h has them: expert, first, count
shared uint tile_places[64], tile_rows[64];
uint column_count, expert_strip;

// Of so many columns in a workgroup; false: it has none. All invocations call it.
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

// Of x; columns beyond the last repeat it and are not written.
uint column_row(uint c) {
    return min(first_column + c, p.columns - 1u);
}
#endif

// Where a column of x begins.
uint column_at(uint c) {
    return at[1] + column_row(c) * p.x_stride;
}

#if defined(QUANTISED)
// Words of x that a group meets: a scale, the sums of both halves, the steps.
const uint kGroupX = 10u, kStepWord = 2u;

// What a group adds to the sum of a column (core/quant.h): `dots` of its halves, or of all of it,
// are those of codes, which are higher by an offset than what they stand for.
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

// What a result is added to, and what to it; to be asked for early. A row beyond the last is a copy
// of it.
void ask_for(out float held, out float more, uint row, uint c) {
    held = more = 0.0;
#if !defined(EXPERTS)
    row = min(row, p.rows - 1u);
    if (p.accumulates != 0u && has_column(c)) held = uintBitsToFloat(product[place_of(row, c)]);
    if (p.has_bias != 0u) more = bias[at[3] + row];
#endif
}

// Of four rows.
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

// Asked for when it is written.
void write_sum(uint row, uint c, float sum) {
    float held, more;
    ask_for(held, more, row, c);
    write_sum(row, c, sum, held, more);
}
