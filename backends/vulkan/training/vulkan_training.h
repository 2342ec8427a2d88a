// The training ops on Vulkan: a few dispatches each, of shaders/training.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

#include "backend/training.h"
#include "training/training_params.h"
#include "vulkan/queue.h"

namespace aerie::vulkan {

class VulkanTraining final : public TrainingDevice {
  public:
    explicit VulkanTraining(std::shared_ptr<Device> device);

    // device.cpp
    Matrix allocate(int rows, int cols) override;
    void write(const Matrix& to, std::span<const float> dense) override;
    void write(const Matrix& to, std::span<const double> dense) override;
    void read(const Matrix& from, std::span<double> dense) override;

    // rows.cpp
    void fill(const Matrix& out, double value) override;
    void add(const Matrix& out, const Matrix& x) override;
    void add_bias(const Matrix& out, const Matrix& bias) override;
    void sum_rows(const Matrix& out, const Matrix& x) override;
    void gather(const Matrix& out, const Matrix& table, std::span<const int> rows) override;
    void scatter(const Matrix& out, const Matrix& x, std::span<const int> rows) override;
    void rotate(const Matrix& x, std::span<const int> positions, int head_dim, double base,
                bool back) override;
    void gate(const Matrix& out, const Matrix& gate_up) override;
    void gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up) override;
    void update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                const Matrix& square, const AdamW& rule, int step, double clip) override;

    // reductions.cpp
    void multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b,
                  bool accumulate) override;
    void rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x, const Matrix& weight,
                  double epsilon) override;
    void rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                       const Matrix& inverse, const Matrix& x, const Matrix& weight) override;
    CrossEntropy cross_entropy(const Matrix& logits, const Matrix& targets,
                               std::span<const int> target_rows, double weight) override;
    double smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                     std::span<const int> target_rows, double weight) override;
    double sum_of_squares(const Matrix& x) override;

    // attention.cpp
    void attend(const Matrix& out, const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                std::span<const Matrix> values, const TrainedAttention& shape) override;
    void attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                     std::span<const Matrix> dvalues, const Matrix& dout, const Matrix& out,
                     const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                     std::span<const Matrix> values, const TrainedAttention& shape) override;

  private:
    // Binding i of the shader is bindings[i]; `work` is the number of multiply-adds or so.
    template <class Params>
    void dispatch(const Kernel& kernel, const Params& params,
                  std::initializer_list<Access> bindings, Grid grid, double work) {
        queue_->dispatch({kernel, std::span(bindings.begin(), bindings.size()), &params,
                          sizeof(Params), grid, work, work});
    }
    void add_rows(const Matrix& out, const Tensor& x, uint32_t x_stride);
    void move_rows(const Matrix& out, const Matrix& x, std::span<const int> rows, bool scatters);

    // A tensor [1, numbers] on the device, until the next call.
    Tensor upload(std::span<const int> numbers);
    // F32 [rows, cols] for results of rows, until the next call.
    Tensor results(int rows, int cols);
    std::vector<float> read_all(const Tensor& dense);
    Tensor scratch(Buffer& memory, DType type, int rows, int cols);

    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
    Buffer numbers_, results_;
};

// A matrix as the shaders take it; no tensor for no matrix.
inline Tensor tensor_of(const Matrix& m) {
    return {static_cast<VulkanMemory*>(m.memory.get()),
            size_t(m.offset) * sizeof(float),
            DType::F32,
            m.rows,
            m.cols,
            int(m.stride)};
}
inline Access reads(const Matrix& m) {
    return reads(tensor_of(m));
}
inline Access writes(const Matrix& m) {
    return writes(tensor_of(m));
}
inline uint32_t stride_of(const Matrix& m) {
    return uint32_t(m.stride);
}
// The work of an op that takes so many multiply-adds for each element.
inline double work_of(const Matrix& m, double each) {
    return each * double(m.size());
}
// Workgroups along y that take all rows in turn.
inline uint32_t row_groups(int rows) {
    return std::min(uint32_t(rows), kMostGroups);
}

}  // namespace aerie::vulkan
