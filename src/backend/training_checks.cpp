#include "backend/training_checks.h"

#include "core/error.h"

namespace aerie {

namespace {

void check(bool fits) {
    if (!fits) throw Error("training: the shapes of an operation do not fit");
}

bool same_shape(const Matrix& a, const Matrix& b) {
    return a.rows == b.rows && a.cols == b.cols;
}

// All of `rows` are rows of a matrix with `count` rows.
void check_rows(std::span<const int> rows, int count) {
    for (const int row : rows) check(row >= 0 && row < count);
}

// Row numbers below `count`; negative ones name no row.
void check_optional_rows(std::span<const int> rows, int count) {
    for (const int row : rows) check(row < count);
}

}  // namespace

void check_copied(const Matrix& m, size_t values) {
    check(values == m.size());
}

int check_multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b) {
    const bool a_is_transposed = form == Product::at_b, b_is_transposed = form == Product::a_bt;
    const int inner = a_is_transposed ? a.rows : a.cols;
    check(out.rows == (a_is_transposed ? a.cols : a.rows) &&
          out.cols == (b_is_transposed ? b.rows : b.cols) &&
          inner == (b_is_transposed ? b.cols : b.rows));
    return inner;
}

void check_add(const Matrix& out, const Matrix& x) {
    check(same_shape(out, x));
}

void check_vector(const Matrix& vector, const Matrix& m) {
    check(vector.rows == 1 && vector.cols == m.cols);
}

void check_gather(const Matrix& out, const Matrix& table, std::span<const int> rows) {
    check(int(rows.size()) == out.rows && table.cols == out.cols);
    check_rows(rows, table.rows);
}

void check_scatter(const Matrix& out, const Matrix& x, std::span<const int> rows) {
    check(int(rows.size()) == x.rows && x.cols == out.cols);
    check_rows(rows, out.rows);
}

void check_rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x,
                    const Matrix& weight) {
    check_vector(weight, x);
    check(same_shape(out, x) && inverse.rows == x.rows && inverse.cols == 1);
}

void check_rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                         const Matrix& inverse, const Matrix& x, const Matrix& weight) {
    check_rms_norm(dout, inverse, x, weight);
    check_vector(dweight, x);
    check(!dx || same_shape(dx, x));
}

void check_rotate(const Matrix& x, std::span<const int> positions, int head_dim) {
    check(int(positions.size()) == x.rows && head_dim > 0 && head_dim % 2 == 0 &&
          x.cols % head_dim == 0);
}

void check_attend(const Matrix& out, const Matrix& lse, const Matrix& q,
                  std::span<const Matrix> keys, std::span<const Matrix> values,
                  const TrainedAttention& shape) {
    check(shape.kv_heads > 0 && shape.heads > 0 && shape.heads % shape.kv_heads == 0);
    check(shape.sequences.size() >= 2 && shape.sequences.front() == 0 &&
          shape.sequences.back() == q.rows);
    for (size_t i = 1; i < shape.sequences.size(); ++i)
        check(shape.sequences[i - 1] <= shape.sequences[i]);
    check(q.cols == shape.heads * shape.head_dim && same_shape(out, q) && lse.rows == q.rows &&
          lse.cols == shape.heads);
    check(!keys.empty() && keys.size() == values.size());
    for (const std::span<const Matrix> all : {keys, values})
        for (const Matrix& m : all)
            check(m.rows == q.rows && m.cols == shape.kv_heads * shape.head_dim);
}

void check_attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                       std::span<const Matrix> dvalues, const Matrix& dout, const Matrix& out,
                       const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                       std::span<const Matrix> values, const TrainedAttention& shape) {
    check_attend(out, lse, q, keys, values, shape);
    check_attend(dout, lse, dq, dkeys, dvalues, shape);
    check(dq.rows == q.rows && dkeys.size() == keys.size());
}

void check_gate(const Matrix& out, const Matrix& gate_up) {
    check(gate_up.cols == 2 * out.cols && gate_up.rows == out.rows);
}

void check_gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up) {
    check_gate(dout, gate_up);
    check(same_shape(dgate_up, gate_up));
}

void check_cross_entropy(const Matrix& logits, const Matrix& targets,
                         std::span<const int> target_rows) {
    check(int(target_rows.size()) == logits.rows && targets.cols == logits.cols);
    check_optional_rows(target_rows, targets.rows);
}

void check_smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                     std::span<const int> target_rows) {
    check(int(target_rows.size()) == x.rows && goals.cols == x.cols && same_shape(dx, x));
    check_optional_rows(target_rows, goals.rows);
}

void check_update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                  const Matrix& square) {
    check(same_shape(gradient, weight) && same_shape(mean, weight) && same_shape(square, weight));
}

}  // namespace aerie
