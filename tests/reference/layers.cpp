// The ops of a transformer layer as plain double-precision loops.
#include "reference/layers.h"

#include <algorithm>
#include <cmath>

namespace aerie::reference {

Exact matmul(const Matrix& x, const Matrix& weight) {
    Exact out(x.rows, weight.rows);
    for (int m = 0; m < x.rows; ++m)
        for (int n = 0; n < weight.rows; ++n)
            for (int k = 0; k < x.cols; ++k) out[m][n] += double(x[m][k]) * double(weight[n][k]);
    return out;
}

Exact rms_norm(const Matrix& x, const Matrix& weight, double epsilon) {
    Exact out(x.rows, x.cols);
    for (int m = 0; m < x.rows; ++m) {
        double squares = 0;
        for (int i = 0; i < x.cols; ++i) squares += double(x[m][i]) * double(x[m][i]);
        const double scale = 1 / std::sqrt(squares / x.cols + epsilon);
        for (int i = 0; i < x.cols; ++i) out[m][i] = x[m][i] * scale * weight[0][i];
    }
    return out;
}

Exact swiglu(const Matrix& gate_up) {
    const int width = gate_up.cols / 2;
    Exact out(gate_up.rows, width);
    for (int m = 0; m < out.rows; ++m)
        for (int i = 0; i < width; ++i) {
            const double gate = gate_up[m][i];
            out[m][i] = gate / (1 + std::exp(-gate)) * gate_up[m][width + i];
        }
    return out;
}

Exact rope(const Matrix& qkv, const Matrix& table, const std::vector<int>& positions,
           const AttentionShape& shape) {
    const int half = shape.head_dim / 2;
    Exact out(qkv.rows, qkv.cols);
    std::copy(qkv.data.begin(), qkv.data.end(), out.data.begin());
    for (int m = 0; m < qkv.rows; ++m)
        for (int head = 0; head < shape.heads + shape.kv_heads; ++head)
            for (int i = 0; i < half; ++i) {
                const int a = head * shape.head_dim + i, b = a + half;
                const double cosine = table[positions[size_t(m)]][i];
                const double sine = table[positions[size_t(m)]][half + i];
                out[m][a] = qkv[m][a] * cosine - qkv[m][b] * sine;
                out[m][b] = qkv[m][b] * cosine + qkv[m][a] * sine;
            }
    return out;
}

std::vector<double> attention(const float* q, const Matrix& keys, const Matrix& values,
                              const AttentionShape& shape, double scale, int window) {
    const int first = window > 0 ? std::max(0, keys.rows - window) : 0;
    std::vector<double> out(size_t(shape.heads) * size_t(shape.head_dim));
    for (int head = 0; head < shape.heads; ++head) {
        const int kv_head = head / (shape.heads / shape.kv_heads);
        std::vector<double> weights(size_t(keys.rows), -HUGE_VAL);
        for (int p = first; p < keys.rows; ++p) {
            weights[size_t(p)] = 0;
            for (int d = 0; d < shape.head_dim; ++d)
                weights[size_t(p)] += double(q[head * shape.head_dim + d]) *
                                      double(keys[p][kv_head * shape.head_dim + d]);
            weights[size_t(p)] *= scale;
        }
        const double top = *std::max_element(weights.begin(), weights.end());
        double total = 0;
        for (double& w : weights) total += w = std::exp(w - top);
        for (int p = first; p < keys.rows; ++p)
            for (int d = 0; d < shape.head_dim; ++d)
                out[size_t(head * shape.head_dim + d)] +=
                    weights[size_t(p)] / total * values[p][kv_head * shape.head_dim + d];
    }
    return out;
}

}  // namespace aerie::reference
