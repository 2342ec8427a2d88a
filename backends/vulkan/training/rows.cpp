// Training ops whose elements do not depend on each other, and sums of columns.
#include <cmath>
#include <numbers>

#include "backend/training_checks.h"
#include "vulkan/glue.h"
#include "vulkan/training/vulkan_training.h"

namespace aerie::vulkan {

namespace {

// The grid of an element-wise shader.
Grid elements(const Matrix& m) {
    return {groups(m.cols, kGroupSize), row_groups(m.rows)};
}

// Turns per position of each pair of a head in 64 bits of fixed point: all high words, then all low
// words.
std::vector<int> rotation_rates(int head_dim, double base) {
    const int half = head_dim / 2;
    std::vector<int> words(static_cast<size_t>(head_dim));
    for (int i = 0; i < half; ++i) {
        const double turns = std::pow(base, -2.0 * i / head_dim) / (2 * std::numbers::pi);
        double whole;
        const double low = std::modf(std::ldexp(std::modf(turns, &whole), 32), &whole);
        words[size_t(i)] = int(uint32_t(whole));
        words[size_t(half + i)] = int(uint32_t(std::ldexp(low, 32)));
    }
    return words;
}

}  // namespace

void VulkanTraining::fill(const Matrix& out, double value) {
    const FillParams params = {uint32_t(out.rows), uint32_t(out.cols), stride_of(out),
                               float(value)};
    dispatch({"training_fill"}, params, {writes(out)}, elements(out), work_of(out, 1));
}

void VulkanTraining::add_rows(const Matrix& out, const Tensor& x, uint32_t x_stride) {
    const AddRowsParams params = {uint32_t(out.rows), uint32_t(out.cols), stride_of(out), x_stride};
    dispatch({"training_add_rows"}, params, {writes(out), reads(x)}, elements(out),
             work_of(out, 1));
}

void VulkanTraining::add(const Matrix& out, const Matrix& x) {
    check_add(out, x);
    add_rows(out, tensor_of(x), stride_of(x));
}

void VulkanTraining::add_bias(const Matrix& out, const Matrix& bias) {
    check_vector(bias, out);
    add_rows(out, tensor_of(bias), 0);
}

void VulkanTraining::sum_rows(const Matrix& out, const Matrix& x) {
    check_vector(out, x);
    const ColumnSumsParams params = {uint32_t(x.rows), uint32_t(x.cols), stride_of(x), 0, 0};
    dispatch({"training_column_sums", {0}}, params, {writes(out), reads(x), reads(x), reads(x)},
             {groups(x.cols, kSummedColumns)}, work_of(x, 1));
}

void VulkanTraining::move_rows(const Matrix& out, const Matrix& x, std::span<const int> rows,
                               bool scatters) {
    if (rows.empty()) return;
    const MoveRowsParams params = {uint32_t(rows.size()), uint32_t(out.cols), stride_of(out),
                                   stride_of(x)};
    const Matrix& moved = scatters ? x : out;
    dispatch({"training_move_rows", {scatters}}, params,
             {writes(out), reads(x), reads(upload(rows))}, elements(moved), work_of(moved, 1));
}

void VulkanTraining::gather(const Matrix& out, const Matrix& table, std::span<const int> rows) {
    check_gather(out, table, rows);
    move_rows(out, table, rows, false);
}

void VulkanTraining::scatter(const Matrix& out, const Matrix& x, std::span<const int> rows) {
    check_scatter(out, x, rows);
    move_rows(out, x, rows, true);
}

void VulkanTraining::rotate(const Matrix& x, std::span<const int> positions, int head_dim,
                            double base, bool back) {
    check_rotate(x, positions, head_dim);
    std::vector<int> numbers(positions.begin(), positions.end());
    std::ranges::copy(rotation_rates(head_dim, base), std::back_inserter(numbers));
    const Tensor all = upload(numbers);
    const RotateParams params = {uint32_t(x.rows), uint32_t(x.cols / 2), uint32_t(head_dim / 2),
                                 stride_of(x), back};
    dispatch({"training_rotate"}, params,
             {writes(x), reads(all.col_range(0, x.rows)), reads(all.col_range(x.rows, head_dim))},
             {groups(x.cols / 2, kGroupSize), row_groups(x.rows)}, work_of(x, 20));
}

void VulkanTraining::gate(const Matrix& out, const Matrix& gate_up) {
    check_gate(out, gate_up);
    const GateParams params = {uint32_t(out.rows), uint32_t(out.cols), stride_of(out),
                               stride_of(gate_up)};
    dispatch({"training_gate"}, params, {writes(out), reads(gate_up)}, elements(out),
             work_of(out, 20));
}

void VulkanTraining::gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up) {
    check_gate_back(dgate_up, dout, gate_up);
    const GateBackParams params = {uint32_t(dout.rows), uint32_t(dout.cols), stride_of(dgate_up),
                                   stride_of(dout), stride_of(gate_up)};
    dispatch({"training_gate_back"}, params, {writes(dgate_up), reads(dout), reads(gate_up)},
             elements(dout), work_of(dout, 30));
}

void VulkanTraining::update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                            const Matrix& square, const AdamW& rule, int step, double clip) {
    check_update(weight, gradient, mean, square);
    const UpdateParams params = {
        .rows = uint32_t(weight.rows),
        .cols = uint32_t(weight.cols),
        .weight_stride = stride_of(weight),
        .gradient_stride = stride_of(gradient),
        .mean_stride = stride_of(mean),
        .square_stride = stride_of(square),
        .rate = float(rule.rate),
        .decay = float(rule.decay),
        .epsilon = float(rule.epsilon),
        .clip = float(clip),
        .beta1 = float(rule.beta1),
        .beta2 = float(rule.beta2),
        .rest1 = float(1 - rule.beta1),
        .rest2 = float(1 - rule.beta2),
        .mean_scale = float(1 / (1 - std::pow(rule.beta1, step))),
        .square_scale = float(1 / (1 - std::pow(rule.beta2, step))),
    };
    dispatch({"training_update"}, params,
             {writes(weight), writes(mean), writes(square), reads(gradient)}, elements(weight),
             work_of(weight, 20));
}

}  // namespace aerie::vulkan
