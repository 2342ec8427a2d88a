// The ops of training that compute each element by itself: fills, sums, rows by number, rotation,
// gates, and the update of weights.
#include <cmath>

#include "backend/training_checks.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"
#include "cuda/training/cuda_training.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 256;

// Calls body(r, c) for every element of a matrix with so many columns; a block has a part of a row.
template <class Body>
__global__ void element_kernel(int cols, Body body) {
    const int c = int(blockIdx.y) * kThreads + int(threadIdx.x);
    if (c < cols) body(int(blockIdx.x), c);
}

template <class Body>
void for_each_element(int rows, int cols, Queue& queue, const char* op, const Body& body) {
    if (rows == 0 || cols == 0) return;
    const dim3 blocks(unsigned(rows), unsigned(tiles_of(cols, kThreads)));
    launch(element_kernel<Body>, {blocks, dim3(kThreads), queue, op}, cols, body);
}

struct Fill {
    View<float> out;
    float value;
    __device__ void operator()(int r, int c) const { out[r][c] = value; }
};

struct Add {
    View<float> out;
    View<const float> x;
    __device__ void operator()(int r, int c) const { out[r][c] += x[r][c]; }
};

struct AddBias {
    View<float> out;
    View<const float> bias;
    __device__ void operator()(int r, int c) const { out[r][c] += bias[0][c]; }
};

struct Gather {
    View<float> out;
    View<const float> table;
    const int* rows;
    __device__ void operator()(int r, int c) const { out[r][c] = table[rows[r]][c]; }
};

struct Scatter {
    View<float> out;
    View<const float> x;
    const int* rows;
    __device__ void operator()(int r, int c) const { out[rows[r]][c] = x[r][c]; }
};

// Column i stands for the pairs (i, i + half) of all heads, which turn by the same angle.
struct Rotate {
    View<float> x;
    const int* positions;
    int head_dim;
    double base;
    float direction;  // -1: back

    __device__ void operator()(int r, int i) const {
        const int half = head_dim / 2;
        const double angle = positions[r] * pow(base, -2.0 * i / head_dim);
        const float cosine = float(cos(angle)), sine = direction * float(sin(angle));
        for (float* head = x[r]; head < x[r] + x.cols; head += head_dim) {
            const float low = head[i], high = head[i + half];
            head[i] = low * cosine - high * sine;
            head[i + half] = high * cosine + low * sine;
        }
    }
};

struct Gate {
    View<float> out;
    View<const float> gate_up;
    __device__ void operator()(int r, int c) const {
        const float x = gate_up[r][c];
        out[r][c] = x / (1 + expf(-x)) * gate_up[r][out.cols + c];
    }
};

// silu'(x) = s (1 + x (1 - s)), with s = 1 / (1 + exp(-x)).
struct GateBack {
    View<float> dgate_up;
    View<const float> dout, gate_up;
    __device__ void operator()(int r, int c) const {
        const float x = gate_up[r][c], up = gate_up[r][dout.cols + c], d = dout[r][c];
        const float s = 1 / (1 + expf(-x));
        dgate_up[r][c] = d * up * s * (1 + x * (1 - s));
        dgate_up[r][dout.cols + c] = d * x * s;
    }
};

// AdamW, with all that depends on the step alone computed on the host.
struct Update {
    View<float> weight;
    View<const float> gradient;
    View<float> mean, square;
    float clip, keep_mean, take_mean, keep_square, take_square;
    float mean_scale, square_scale;  // corrections of the bias of the first steps
    float rate, epsilon, decay;

    __device__ void operator()(int r, int c) const {
        const float d = gradient[r][c] * clip;
        const float m = keep_mean * mean[r][c] + take_mean * d;
        const float v = keep_square * square[r][c] + take_square * d * d;
        mean[r][c] = m;
        square[r][c] = v;
        const float way = m * mean_scale / (sqrtf(v * square_scale) + epsilon);
        weight[r][c] -= rate * (way + decay * weight[r][c]);
    }
};

}  // namespace

void CudaTraining::fill(const Matrix& out, double value) {
    for_each_element(out.rows, out.cols, *queue_, "fill", Fill{tensor_of(out), float(value)});
}

void CudaTraining::add(const Matrix& out, const Matrix& x) {
    check_add(out, x);
    for_each_element(out.rows, out.cols, *queue_, "add", Add{tensor_of(out), tensor_of(x)});
}

void CudaTraining::add_bias(const Matrix& out, const Matrix& bias) {
    check_vector(bias, out);
    for_each_element(out.rows, out.cols, *queue_, "add_bias",
                     AddBias{tensor_of(out), tensor_of(bias)});
}

void CudaTraining::gather(const Matrix& out, const Matrix& table, std::span<const int> rows) {
    check_gather(out, table, rows);
    for_each_element(out.rows, out.cols, *queue_, "gather",
                     Gather{tensor_of(out), tensor_of(table), upload(rows)});
}

void CudaTraining::scatter(const Matrix& out, const Matrix& x, std::span<const int> rows) {
    check_scatter(out, x, rows);
    for_each_element(x.rows, x.cols, *queue_, "scatter",
                     Scatter{tensor_of(out), tensor_of(x), upload(rows)});
}

void CudaTraining::rotate(const Matrix& x, std::span<const int> positions, int head_dim,
                          double base, bool back) {
    check_rotate(x, positions, head_dim);
    for_each_element(x.rows, head_dim / 2, *queue_, "rotate",
                     Rotate{tensor_of(x), upload(positions), head_dim, base, back ? -1.0f : 1.0f});
}

void CudaTraining::gate(const Matrix& out, const Matrix& gate_up) {
    check_gate(out, gate_up);
    for_each_element(out.rows, out.cols, *queue_, "gate", Gate{tensor_of(out), tensor_of(gate_up)});
}

void CudaTraining::gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up) {
    check_gate_back(dgate_up, dout, gate_up);
    for_each_element(dout.rows, dout.cols, *queue_, "gate_back",
                     GateBack{tensor_of(dgate_up), tensor_of(dout), tensor_of(gate_up)});
}

void CudaTraining::update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                          const Matrix& square, const AdamW& rule, int step, double clip) {
    check_update(weight, gradient, mean, square);
    const Update body{.weight = tensor_of(weight),
                      .gradient = tensor_of(gradient),
                      .mean = tensor_of(mean),
                      .square = tensor_of(square),
                      .clip = float(clip),
                      .keep_mean = float(rule.beta1),
                      .take_mean = float(1 - rule.beta1),
                      .keep_square = float(rule.beta2),
                      .take_square = float(1 - rule.beta2),
                      .mean_scale = float(1 / (1 - std::pow(rule.beta1, step))),
                      .square_scale = float(1 / (1 - std::pow(rule.beta2, step))),
                      .rate = float(rule.rate),
                      .epsilon = float(rule.epsilon),
                      .decay = float(rule.decay)};
    for_each_element(weight.rows, weight.cols, *queue_, "update", body);
}

}  // namespace aerie::cuda
