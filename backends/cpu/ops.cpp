// The ops that read weights, Embed and Matmul, and how their work is divided among threads.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/float_environment.h"
#include "cpu/backend.h"
#include "cpu/cache.h"
#include "cpu/strips.h"

namespace aerie::cpu {

namespace {

constexpr int kPackedTogether = 16;  // columns packed by one part: a multiple of every kernel's
                                     // kColumns

// The output for a weight's rows from `row` on.
MatmulOutput from_row(MatmulOutput output, int row) {
    output.out += row;
    if (output.bias) output.bias += row;
    return output;
}

}  // namespace

template <>
void CpuBackend::execute(const Embed& op) {
    FloatEnvironment environment;
    const CpuWeight& weight = static_cast<const CpuWeight&>(op.table);
    for (int r = 0; r < op.out.rows; ++r) {
        const Row& place = row_of(op.rows, r);
        float* to = row_f32(op.out, r);
        if (place.slot < 0)
            std::memset(to, 0, size_t(op.out.cols) * sizeof(float));
        else
            weight.read_row(to, place.token, kernels_);
    }
}

// Multiplies x in blocks of as many rows as the kernels take.
template <>
void CpuBackend::execute(const Matmul& op) {
    FloatEnvironment environment;
    MatmulOutput output = {};
    output.bias = op.bias ? row_f32(op.bias, 0) : nullptr;
    output.out_stride = size_t(op.out.row_stride);
    output.accumulate = op.accumulate == Accumulate::yes;
    for (int first = 0; first < op.x.rows; first += kMaxColumns) {
        output.out = row_f32(op.out, first);
        multiply(op.x.row_range(first, std::min(kMaxColumns, op.x.rows - first)),
                 static_cast<const CpuWeight&>(op.weight), output);
    }
}

void CpuBackend::multiply(Tensor x, const CpuWeight& weight, const MatmulOutput& output) {
    Columns columns = {x, {}};
    for (const CpuSegment& segment : weight.parts())
        multiply(columns, segment.matrix(), from_row(output, segment.place().first_row));
}

void CpuBackend::multiply(Columns& columns, const CpuMatrix& weight, const MatmulOutput& output) {
    const Tensor& x = columns.x;
    if (!is_quantised(weight.dtype)) return multiply_floats(x, weight, output);
    if (x.dtype == DType::F32 && !columns.quantised) {
        columns.quantised = dense_prefix(quantised_, x.rows, x.cols);
        execute(Copy{columns.quantised, x});
    }
    const Tensor& quantised = columns.quantised ? columns.quantised : x;
    multiply_quantised(quantised, weight, output);
}

// Calls body(strips, rows, output) for ranges of strips, on all threads: `strips` is the first
// strip of the range, `output` begins with its first row.
template <class Body>
void CpuBackend::share_strips(const Tensor& x, const CpuMatrix& weight, const MatmulOutput& output,
                              const Body& body) {
    const int strips = (weight.rows + kStripRows - 1) / kStripRows;
    const int grain = std::clamp(strips / pool_.threads(), 1, kStripsTogether);
    pool_.run(strips, double(x.rows) * x.cols * kStripRows, grain, [&](int first, int last, int) {
        const int row = first * kStripRows;
        body(weight.strip(first), std::min(last * kStripRows, weight.rows) - row,
             from_row(output, row));
    });
}

void CpuBackend::multiply_floats(Tensor x, const CpuMatrix& weight, const MatmulOutput& output) {
    share_strips(x, weight, output, [&](const void* strips, int rows, const MatmulOutput& part) {
        kernels_.matmul({.x = row_f32(x, 0),
                         .x_stride = size_t(x.row_stride),
                         .columns = x.rows,
                         .weight = strips,
                         .type = float_type(weight.dtype),
                         .rows = rows,
                         .inner = x.cols,
                         .output = part});
    });
}

void CpuBackend::multiply_quantised(Tensor x, const CpuMatrix& weight, const MatmulOutput& output) {
    assert(x.cols <= reserved().widest && x.rows <= reserved().rows);
    const PackTask pack = {.x = row<std::byte>(x, 0),
                           .x_stride = size_bytes(x.dtype, size_t(x.row_stride)),
                           .columns = x.rows,
                           .inner = x.cols,
                           .type = weight.dtype,
                           .packed = packed_};
    pool_.run(x.rows, x.cols, kPackedTogether,
              [&](int first, int last, int) { kernels_.pack_columns(pack, first, last); });
    share_strips(x, weight, output, [&](const void* strips, int rows, const MatmulOutput& part) {
        kernels_.matmul_quant({.packed = packed_,
                               .columns = x.rows,
                               .weight = strips,
                               .type = pack.type,
                               .rows = rows,
                               .inner = x.cols,
                               .output = part});
    });
}

}  // namespace aerie::cpu
