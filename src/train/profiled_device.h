// A training device that measures the time of each op of another one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/training.h"

namespace aerie::train {

// A GPU computes while the host goes on: there an op's time is that of the host, which waits in
// those that return a result.
class ProfiledDevice final : public TrainingDevice {
  public:
    explicit ProfiledDevice(std::unique_ptr<TrainingDevice> device) : device_(std::move(device)) {}

    std::vector<OpTime> op_times() const;

    Matrix allocate(int rows, int cols) override;
    void write(const Matrix& to, std::span<const float> dense) override;
    void write(const Matrix& to, std::span<const double> dense) override;
    void read(const Matrix& from, std::span<double> dense) override;
    void fill(const Matrix& out, double value) override;
    void multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b,
                  bool accumulate) override;
    void add(const Matrix& out, const Matrix& x) override;
    void add_bias(const Matrix& out, const Matrix& bias) override;
    void sum_rows(const Matrix& out, const Matrix& x) override;
    void gather(const Matrix& out, const Matrix& table, std::span<const int> rows) override;
    void scatter(const Matrix& out, const Matrix& x, std::span<const int> rows) override;
    void rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x, const Matrix& weight,
                  double epsilon) override;
    void rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                       const Matrix& inverse, const Matrix& x, const Matrix& weight) override;
    void rotate(const Matrix& x, std::span<const int> positions, int head_dim, double base,
                bool back) override;
    void attend(const Matrix& out, const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                std::span<const Matrix> values, const TrainedAttention& shape) override;
    void attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                     std::span<const Matrix> dvalues, const Matrix& dout, const Matrix& out,
                     const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                     std::span<const Matrix> values, const TrainedAttention& shape) override;
    void gate(const Matrix& out, const Matrix& gate_up) override;
    void gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up) override;
    CrossEntropy cross_entropy(const Matrix& logits, const Matrix& targets,
                               std::span<const int> target_rows, double weight) override;
    double smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                     std::span<const int> target_rows, double weight) override;
    double sum_of_squares(const Matrix& x) override;
    void update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                const Matrix& square, const AdamW& rule, int step, double clip) override;

  private:
    template <class Op>
    auto timed(const char* name, const Op& op);

    std::unique_ptr<TrainingDevice> device_;
    std::map<std::string, OpTime> times_;
};

}  // namespace aerie::train
