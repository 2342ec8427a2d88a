// The second interface of a device: what the training of a draft head computes. A device that runs
// a model need not train.
//
// Matrices hold reals in rows: f32 on every device, f64 on the CPU where gradients are checked
// against finite differences. The contract of bits of backend.h does not bind here; with the same
// device and number of threads, the same calls give the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace aerie {

// Rows of reals in a device's memory: element (r, c) is number offset + r * stride + c.
struct Matrix {
    std::shared_ptr<void> memory;
    int64_t offset = 0;
    int rows = 0, cols = 0;
    int64_t stride = 0;

    explicit operator bool() const { return memory != nullptr; }
    size_t size() const { return size_t(rows) * size_t(cols); }
    Matrix row_range(int first, int count) const {
        return {memory, offset + first * stride, count, cols, stride};
    }
    Matrix col_range(int first, int count) const {
        return {memory, offset + first, rows, count, stride};
    }
};

// The form of a product: which operand is transposed.
enum class Product {
    a_bt,  // out [M, N] = a [M, K] b [N, K]^T: a layer forward
    a_b,   // out [M, N] = a [M, K] b [K, N]: the gradient of its input
    at_b,  // out [M, N] = a [K, M]^T b [K, N]: the gradient of its weight
};

struct TrainedAttention {
    int heads = 0, kv_heads = 0, head_dim = 0;
    std::span<const int> sequences;  // the first row of each sequence, and the number of all rows
};

// The result of cross_entropy(): sums over the rows that count.
struct CrossEntropy {
    double loss = 0;
    int rows = 0;
    int hits = 0;  // rows whose largest logit is where the target is largest
};

struct AdamW {
    double rate = 0, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0;
};

class TrainingDevice {
  public:
    virtual ~TrainingDevice() = default;

    virtual Matrix allocate(int rows, int cols) = 0;  // zeroed; throws Error
    virtual void write(const Matrix& to, std::span<const float> dense) = 0;
    virtual void write(const Matrix& to, std::span<const double> dense) = 0;
    virtual void read(const Matrix& from, std::span<double> dense) = 0;
    virtual void fill(const Matrix& out, double value) = 0;

    // out = product, or out += product.
    virtual void multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b,
                          bool accumulate) = 0;
    virtual void add(const Matrix& out, const Matrix& x) = 0;          // out += x
    virtual void add_bias(const Matrix& out, const Matrix& bias) = 0;  // out row r += [1, cols]
    // out [1, cols] += the sum of x's rows: the gradient of a bias.
    virtual void sum_rows(const Matrix& out, const Matrix& x) = 0;
    // out row r = table row rows[r]; and the reverse: out row rows[r] = x row r, where no row is
    // named twice.
    virtual void gather(const Matrix& out, const Matrix& table, std::span<const int> rows) = 0;
    virtual void scatter(const Matrix& out, const Matrix& x, std::span<const int> rows) = 0;

    // out = x / sqrt(mean(x^2) + epsilon) * weight, per row; `inverse` [rows, 1] keeps
    // 1 / sqrt(mean(x^2) + epsilon) for the gradient.
    virtual void rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x,
                          const Matrix& weight, double epsilon) = 0;
    // dx += the gradient of x (no dx: x is not trained), dweight += that of the weight.
    virtual void rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                               const Matrix& inverse, const Matrix& x, const Matrix& weight) = 0;

    // Rotates each head of x [rows, heads * head_dim] to its row's position, or back: element i of
    // a head pairs with i + head_dim / 2, by the angle position * base^(-2 i / head_dim).
    virtual void rotate(const Matrix& x, std::span<const int> positions, int head_dim, double base,
                        bool back) = 0;

    // Attention of training-time test (EAGLE-3): row i of a sequence attends to rows 0 ... i of
    // keys[0] in its sequence, and to row i of keys[1], keys[2], ..., in one softmax. `lse`
    // [rows, heads] keeps the logarithm of the sum of exponentials.
    virtual void attend(const Matrix& out, const Matrix& lse, const Matrix& q,
                        std::span<const Matrix> keys, std::span<const Matrix> values,
                        const TrainedAttention& shape) = 0;
    // dq = the gradient of q; dkeys[j] += that of keys[j], and dvalues[j] alike.
    virtual void attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                             std::span<const Matrix> dvalues, const Matrix& dout, const Matrix& out,
                             const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                             std::span<const Matrix> values, const TrainedAttention& shape) = 0;

    // out [rows, I] = silu(gate) * up, of gate_up [rows, 2 I].
    virtual void gate(const Matrix& out, const Matrix& gate_up) = 0;
    virtual void gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up) = 0;

    // Softmax cross-entropy. Row r counts if target_rows[r] >= 0: with p = targets row
    // target_rows[r], its loss is -sum over v of p_v * log softmax(logits row r)_v, times `weight`.
    // Replaces each row of logits by its gradient, 0 where a row does not count.
    virtual CrossEntropy cross_entropy(const Matrix& logits, const Matrix& targets,
                                       std::span<const int> target_rows, double weight) = 0;
    // Row r counts if target_rows[r] >= 0, and has the loss mean of SmoothL1(x - goals row
    // target_rows[r]), beta 1, times `weight`. dx = the gradient; returns the unweighted sum.
    virtual double smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                             std::span<const int> target_rows, double weight) = 0;

    virtual double sum_of_squares(const Matrix& x) = 0;
    // One update of AdamW; `step` counts from 1, and gradients are multiplied by `clip` first.
    virtual void update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                        const Matrix& square, const AdamW& rule, int step, double clip) = 0;
};

// Opens a device by the name that it has as a backend (Capabilities::name). threads: of the CPU, 0
// = one per core. Throws Error if it cannot train, as the CPU without a BLAS.
std::unique_ptr<TrainingDevice> open_training_device(const std::string& device, int threads);

}  // namespace aerie
