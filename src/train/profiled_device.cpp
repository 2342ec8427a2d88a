#include "train/profiled_device.h"

#include "core/clock.h"

namespace aerie::train {

template <class Op>
auto ProfiledDevice::timed(const char* name, const Op& op) {
    OpTime& time = times_[name];
    time.op = name;
    ++time.count;
    const Stopwatch watch(steady_seconds, time.seconds);
    return op();
}

std::vector<OpTime> ProfiledDevice::op_times() const {
    std::vector<OpTime> all;
    for (const auto& [name, time] : times_) all.push_back(time);
    return all;
}

Matrix ProfiledDevice::allocate(int rows, int cols) {
    return timed("allocate", [&] { return device_->allocate(rows, cols); });
}

void ProfiledDevice::write(const Matrix& to, std::span<const float> dense) {
    timed("write", [&] { device_->write(to, dense); });
}

void ProfiledDevice::write(const Matrix& to, std::span<const double> dense) {
    timed("write", [&] { device_->write(to, dense); });
}

void ProfiledDevice::read(const Matrix& from, std::span<double> dense) {
    timed("read", [&] { device_->read(from, dense); });
}

void ProfiledDevice::fill(const Matrix& out, double value) {
    timed("fill", [&] { device_->fill(out, value); });
}

void ProfiledDevice::multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b,
                              bool accumulate) {
    timed("multiply", [&] { device_->multiply(form, out, a, b, accumulate); });
}

void ProfiledDevice::add(const Matrix& out, const Matrix& x) {
    timed("add", [&] { device_->add(out, x); });
}

void ProfiledDevice::add_bias(const Matrix& out, const Matrix& bias) {
    timed("add_bias", [&] { device_->add_bias(out, bias); });
}

void ProfiledDevice::sum_rows(const Matrix& out, const Matrix& x) {
    timed("sum_rows", [&] { device_->sum_rows(out, x); });
}

void ProfiledDevice::gather(const Matrix& out, const Matrix& table, std::span<const int> rows) {
    timed("gather", [&] { device_->gather(out, table, rows); });
}

void ProfiledDevice::scatter(const Matrix& out, const Matrix& x, std::span<const int> rows) {
    timed("scatter", [&] { device_->scatter(out, x, rows); });
}

void ProfiledDevice::rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x,
                              const Matrix& weight, double epsilon) {
    timed("rms_norm", [&] { device_->rms_norm(out, inverse, x, weight, epsilon); });
}

void ProfiledDevice::rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                                   const Matrix& inverse, const Matrix& x, const Matrix& weight) {
    timed("rms_norm_back", [&] { device_->rms_norm_back(dx, dweight, dout, inverse, x, weight); });
}

void ProfiledDevice::rotate(const Matrix& x, std::span<const int> positions, int head_dim,
                            double base, bool back) {
    timed("rotate", [&] { device_->rotate(x, positions, head_dim, base, back); });
}

void ProfiledDevice::attend(const Matrix& out, const Matrix& lse, const Matrix& q,
                            std::span<const Matrix> keys, std::span<const Matrix> values,
                            const TrainedAttention& shape) {
    timed("attend", [&] { device_->attend(out, lse, q, keys, values, shape); });
}

void ProfiledDevice::attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                                 std::span<const Matrix> dvalues, const Matrix& dout,
                                 const Matrix& out, const Matrix& lse, const Matrix& q,
                                 std::span<const Matrix> keys, std::span<const Matrix> values,
                                 const TrainedAttention& shape) {
    timed("attend_back", [&] {
        device_->attend_back(dq, dkeys, dvalues, dout, out, lse, q, keys, values, shape);
    });
}

void ProfiledDevice::gate(const Matrix& out, const Matrix& gate_up) {
    timed("gate", [&] { device_->gate(out, gate_up); });
}

void ProfiledDevice::gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up) {
    timed("gate_back", [&] { device_->gate_back(dgate_up, dout, gate_up); });
}

CrossEntropy ProfiledDevice::cross_entropy(const Matrix& logits, const Matrix& targets,
                                           std::span<const int> target_rows, double weight) {
    return timed("cross_entropy",
                 [&] { return device_->cross_entropy(logits, targets, target_rows, weight); });
}

double ProfiledDevice::smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                                 std::span<const int> target_rows, double weight) {
    return timed("smooth_l1",
                 [&] { return device_->smooth_l1(dx, x, goals, target_rows, weight); });
}

double ProfiledDevice::sum_of_squares(const Matrix& x) {
    return timed("sum_of_squares", [&] { return device_->sum_of_squares(x); });
}

void ProfiledDevice::update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                            const Matrix& square, const AdamW& rule, int step, double clip) {
    timed("update", [&] { device_->update(weight, gradient, mean, square, rule, step, clip); });
}

}  // namespace aerie::train
