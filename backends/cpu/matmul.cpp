// Rows of activations times rows of a weight. Lane j of an output's 16 accumulators takes the inner
// elements j mod 16 in ascending order, fused, and one fixed tree adds the lanes: neither the
// number of columns nor any blocking changes a bit.
#include "cpu/isa_kernels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// R weight rows by C columns, of which the accumulators stay in registers.
template <int R, int C>
struct Tile {
    F32x16 lanes[C][R];

    void clear() {
        for (auto& column : lanes)
            for (F32x16& cell : column) cell = splat(0.0f);
    }
    template <class W>
    void step(const W* w, size_t w_stride, const float* x, size_t x_stride) {
        F32x16 rows[R];
        for (int r = 0; r < R; ++r) rows[r] = load(w + r * w_stride);
        for (int c = 0; c < C; ++c) {
            const F32x16 column = load(x + c * x_stride);
            for (int r = 0; r < R; ++r) lanes[c][r] = fma(rows[r], column, lanes[c][r]);
        }
    }
    // The last `n` < 16 inner elements; the lanes beyond them multiply zeros.
    template <class W>
    void tail(const W* w, size_t w_stride, const float* x, size_t x_stride, int n) {
        for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r)
                lanes[c][r] = fma(load_first(w + r * w_stride, n), load_first(x + c * x_stride, n),
                                  lanes[c][r]);
    }
    template <class W>
    void run(const W* w, size_t w_stride, const float* x, size_t x_stride, int inner) {
        int k = 0;
        for (; k + kLanes <= inner; k += kLanes) step(w + k, w_stride, x + k, x_stride);
        if (k < inner) tail(w + k, w_stride, x + k, x_stride, inner - k);
    }
    // Adds up the lanes and writes the outputs of rows row .. row + R - 1, columns from column.
    void finish(const MatmulTask& task, int row, int column) const {
        float sums[(R * C + 3) / 4 * 4];
        const F32x16* flat = &lanes[0][0];
        int done = 0;
        for (; done + 4 <= R * C; done += 4) sum4(sums + done, flat + done);
        for (; done < R * C; ++done) sums[done] = sum(flat[done]);
        for (int c = 0; c < C; ++c) {
            float* out = task.out + (column + c) * task.out_stride + row;
            for (int r = 0; r < R; ++r) {
                float value = sums[c * R + r];
                if (task.bias) value = value + task.bias[row + r];
                out[r] = task.accumulate ? out[r] + value : value;
            }
        }
    }
};

// Few columns: the weights stream through registers once.
template <class W, int R, int C>
void stream_rows(const MatmulTask& task, int first, int last) {
    const W* weight = static_cast<const W*>(task.weight);
    const size_t stride = size_t(task.inner);
    for (int row = first; row < last; row += R) {
        Tile<R, C> tile;
        tile.clear();
        tile.run(weight + row * stride, stride, task.x, task.x_stride, task.inner);
        tile.finish(task, row, 0);
    }
}

template <class W, int R, int C>
void stream(const MatmulTask& task) {
    const int whole = task.rows - task.rows % R;
    stream_rows<W, R, C>(task, 0, whole);
    stream_rows<W, 1, C>(task, whole, task.rows);
}

// A block of the product: kPanelRows weight rows at most, kPanelColumns columns at most.
struct Panel {
    int row, rows;
    int column, columns;
    const float* weights;  // [rows, kPanelInner], converted; zeros behind a tail
    float* partial;        // accumulators between pieces of the inner dimension
    int k, inner;          // this piece
    bool first, last;
};

template <int R, int C>
void panel_tile(const MatmulTask& task, const Panel& panel, int row, int column) {
    Tile<R, C> tile;
    float* partial = panel.partial + (size_t(column) * kPanelRows + row) * kLanes;
    const auto cell = [&](int c, int r) { return partial + (c * kPanelRows + r) * kLanes; };
    tile.clear();
    if (!panel.first)
        for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r) tile.lanes[c][r] = load(cell(c, r));
    tile.run(panel.weights + size_t(row) * kPanelInner, kPanelInner,
             task.x + (panel.column + column) * task.x_stride + panel.k, task.x_stride,
             panel.inner);
    if (panel.last) {
        tile.finish(task, panel.row + row, panel.column + column);
        return;
    }
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r) store(cell(c, r), tile.lanes[c][r]);
}

template <int C>
void panel_columns(const MatmulTask& task, const Panel& panel, int column) {
    int row = 0;
    for (; row + 2 <= panel.rows; row += 2) panel_tile<2, C>(task, panel, row, column);
    if (row < panel.rows) panel_tile<1, C>(task, panel, row, column);
}

void multiply_panel(const MatmulTask& task, const Panel& panel) {
    int column = 0;
    for (; column + 3 <= panel.columns; column += 3) panel_columns<3>(task, panel, column);
    if (panel.columns - column == 2) panel_columns<2>(task, panel, column);
    if (panel.columns - column == 1) panel_columns<1>(task, panel, column);
}

template <class W>
void convert_panel(float* to, const W* weight, size_t stride, int rows, int inner) {
    for (int r = 0; r < rows; ++r)
        for_lanes(inner, [&](int k, int n) {
            store(to + r * kPanelInner + k, load_some(weight + r * stride + k, n));
        });
}

// Many columns: weights are converted to f32 piece by piece, and each piece meets all columns.
template <class W>
void blocked(const MatmulTask& task) {
    const W* weight = static_cast<const W*>(task.weight);
    float* converted = task.scratch;
    Panel panel;
    panel.weights = converted;
    panel.partial = task.scratch + kPanelRows * kPanelInner;
    for (panel.row = 0; panel.row < task.rows; panel.row += kPanelRows) {
        panel.rows = task.rows - panel.row < kPanelRows ? task.rows - panel.row : kPanelRows;
        for (panel.column = 0; panel.column < task.columns; panel.column += kPanelColumns) {
            const int columns = task.columns - panel.column;
            panel.columns = columns < kPanelColumns ? columns : kPanelColumns;
            for (panel.k = 0; panel.k < task.inner; panel.k += kPanelInner) {
                const int inner = task.inner - panel.k;
                panel.inner = inner < kPanelInner ? inner : kPanelInner;
                panel.first = panel.k == 0;
                panel.last = panel.k + panel.inner == task.inner;
                convert_panel(converted, weight + size_t(panel.row) * task.inner + panel.k,
                              size_t(task.inner), panel.rows, panel.inner);
                multiply_panel(task, panel);
            }
        }
    }
}

template <class W>
void matmul_type(const MatmulTask& task) {
    switch (task.columns) {
        case 1:
            return stream<W, 4, 1>(task);
        case 2:
            return stream<W, 2, 2>(task);
        case 3:
            return stream<W, 2, 3>(task);
        default:
            return blocked<W>(task);
    }
}

}  // namespace

void matmul(const MatmulTask& task) {
    switch (task.type) {
        case Float::F32:
            return matmul_type<float>(task);
        case Float::F16:
            return matmul_type<Half>(task);
        case Float::BF16:
            return matmul_type<Brain>(task);
    }
}

}  // namespace aerie::cpu::AERIE_ISA
