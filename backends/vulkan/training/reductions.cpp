// Training ops that sum: products, norms and losses.
#include "backend/training_checks.h"
#include "vulkan/glue.h"
#include "vulkan/training/vulkan_training.h"

namespace aerie::vulkan {

namespace {

// The grid of a shader whose workgroups have a row each.
Grid rows_of(const Matrix& m) {
    return {1, row_groups(m.rows)};
}

}  // namespace

void VulkanTraining::multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b,
                              bool accumulate) {
    const int inner = check_multiply(form, out, a, b);
    if (inner == 0) {
        if (!accumulate) fill(out, 0);
        return;
    }
    const MultiplyParams params = {
        .rows = uint32_t(out.rows),
        .cols = uint32_t(out.cols),
        .inner = uint32_t(inner),
        .out_stride = stride_of(out),
        .a_row = form == Product::at_b ? 1 : stride_of(a),
        .a_inner = form == Product::at_b ? stride_of(a) : 1,
        .b_inner = form == Product::a_bt ? 1 : stride_of(b),
        .b_col = form == Product::a_bt ? stride_of(b) : 1,
        .accumulates = accumulate,
    };
    dispatch({"training_multiply"}, params, {writes(out), reads(a), reads(b)},
             {groups(out.cols, kTileSide), groups(out.rows, kTileSide)}, work_of(out, inner));
}

void VulkanTraining::rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x,
                              const Matrix& weight, double epsilon) {
    check_rms_norm(out, inverse, x, weight);
    const RmsNormParams params = {
        .rows = uint32_t(x.rows),
        .cols = uint32_t(x.cols),
        .out_stride = stride_of(out),
        .inverse_stride = stride_of(inverse),
        .x_stride = stride_of(x),
        .inverse_cols = 1.0f / float(x.cols),
        .epsilon = float(epsilon),
    };
    dispatch({"training_rms_norm"}, params, {writes(out), writes(inverse), reads(x), reads(weight)},
             rows_of(x), work_of(x, 4));
}

void VulkanTraining::rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                                   const Matrix& inverse, const Matrix& x, const Matrix& weight) {
    check_rms_norm_back(dx, dweight, dout, inverse, x, weight);
    const ColumnSumsParams sums = {uint32_t(x.rows), uint32_t(x.cols), stride_of(x),
                                   stride_of(dout), stride_of(inverse)};
    dispatch({"training_column_sums", {1}}, sums,
             {writes(dweight), reads(x), reads(dout), reads(inverse)},
             {groups(x.cols, kSummedColumns)}, work_of(x, 3));
    if (!dx) return;
    const RmsNormBackParams params = {
        .rows = uint32_t(x.rows),
        .cols = uint32_t(x.cols),
        .dx_stride = stride_of(dx),
        .dout_stride = stride_of(dout),
        .inverse_stride = stride_of(inverse),
        .x_stride = stride_of(x),
        .inverse_cols = 1.0f / float(x.cols),
    };
    dispatch({"training_rms_norm_back"}, params,
             {writes(dx), reads(dout), reads(inverse), reads(x), reads(weight)}, rows_of(x),
             work_of(x, 8));
}

CrossEntropy VulkanTraining::cross_entropy(const Matrix& logits, const Matrix& targets,
                                           std::span<const int> target_rows, double weight) {
    check_cross_entropy(logits, targets, target_rows);
    const Tensor results = this->results(logits.rows, 2);
    const CrossEntropyParams params = {uint32_t(logits.rows), uint32_t(logits.cols),
                                       stride_of(logits), stride_of(targets), float(weight)};
    dispatch({"training_cross_entropy"}, params,
             {writes(logits), writes(results), reads(targets), reads(upload(target_rows))},
             rows_of(logits), work_of(logits, 60));
    const std::vector<float> all = read_all(results);
    CrossEntropy found;
    for (size_t r = 0; r < target_rows.size(); ++r) {
        if (target_rows[r] < 0) continue;
        found.loss += double(all[2 * r]);
        found.rows += 1;
        found.hits += int(all[2 * r + 1]);
    }
    return found;
}

double VulkanTraining::smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                                 std::span<const int> target_rows, double weight) {
    check_smooth_l1(dx, x, goals, target_rows);
    const Tensor results = this->results(x.rows, 1);
    const SmoothL1Params params = {uint32_t(x.rows), uint32_t(x.cols), stride_of(dx),
                                   stride_of(x),     stride_of(goals), float(weight / x.cols)};
    dispatch({"training_smooth_l1"}, params,
             {writes(dx), writes(results), reads(x), reads(goals), reads(upload(target_rows))},
             rows_of(x), work_of(x, 8));
    const std::vector<float> all = read_all(results);
    double sum = 0;
    for (size_t r = 0; r < target_rows.size(); ++r)
        if (target_rows[r] >= 0) sum += double(all[r]) / x.cols;
    return sum;
}

double VulkanTraining::sum_of_squares(const Matrix& x) {
    const Tensor results = this->results(x.rows, 1);
    const SquaresParams params = {uint32_t(x.rows), uint32_t(x.cols), stride_of(x)};
    dispatch({"training_sum_of_squares"}, params, {writes(results), reads(x)}, rows_of(x),
             work_of(x, 1));
    double sum = 0;
    for (const float row : read_all(results)) sum += double(row);
    return sum;
}

}  // namespace aerie::vulkan
