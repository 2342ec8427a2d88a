// The ops of training on a GPU, in f32, enqueued on one stream. Each op is in the file of its
// subject; sums are in a fixed order everywhere, so the same calls give the same bits.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/training.h"
#include "cuda/memory.h"
#include "cuda/queue.h"
#include "cuda/training/cublas.h"

namespace aerie::cuda {

// A matrix as a tensor of f32.
inline Tensor tensor_of(const Matrix& m) {
    return {static_cast<CudaMemory*>(m.memory.get()),
            size_t(m.offset) * sizeof(float),
            DType::F32,
            m.rows,
            m.cols,
            int(m.stride)};
}
// The device address of its first element.
inline float* elements_of(const Matrix& m) {
    return row<float>(tensor_of(m), 0);
}

class CudaTraining final : public TrainingDevice {
  public:
    explicit CudaTraining(const std::string& device);  // throws Error

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
    // Memory that grows as ops need it. Ops of one queue use it one after the other.
    class Workspace {
      public:
        // At least `count` elements, in which anything may be. Throws Error.
        template <class T>
        T* take(size_t count, const std::shared_ptr<Queue>& queue) {
            const size_t bytes = count * sizeof(T);
            if (!memory_ || memory_->size_bytes < bytes) {
                memory_.reset();
                memory_ = std::make_unique<CudaMemory>(bytes, queue);
            }
            return reinterpret_cast<T*>(memory_->data());
        }
        // The first `count` elements as words of 32 bits.
        template <class T>
        Tensor words(size_t count) const {
            return dense(memory_.get(), DType::I32, 1, int(count * sizeof(T) / sizeof(int32_t)));
        }

      private:
        std::unique_ptr<CudaMemory> memory_;
    };

    // The numbers on the device, until the next call.
    const int* upload(std::span<const int> numbers);
    // `count` sums that an op computes, until the next call; and their values, once it has run.
    double* sums(size_t count) { return sums_.take<double>(count, queue_); }
    std::vector<double> read_sums(size_t count);

    std::shared_ptr<Queue> queue_;    // shared with memory, which may outlive the device
    std::unique_ptr<Cublas> cublas_;  // null: a kernel computes products
    Workspace numbers_, sums_;
    Workspace along_;  // dout . out by row and head, within attend_back()
};

}  // namespace aerie::cuda
