// Computes one row at a time, in the order of docs/drafting.md sections 1 and 2.
#include "reference/eagle3.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace aerie::reference {

namespace {

using Vector = std::vector<double>;

Vector row_of(const Exact& matrix, int row) {
    return {matrix[row], matrix[row] + matrix.cols};
}

Vector product(const Exact& weight, const Vector& x, const Exact& bias = {}) {
    Vector out(size_t(weight.rows));
    for (int n = 0; n < weight.rows; ++n) {
        for (int k = 0; k < weight.cols; ++k) out[size_t(n)] += weight[n][k] * x[size_t(k)];
        if (bias.cols > 0) out[size_t(n)] += bias[0][n];
    }
    return out;
}

Vector normed(const Vector& x, const Exact& weight, double epsilon) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double scale = 1 / std::sqrt(squares / double(x.size()) + epsilon);
    Vector out = x;
    for (size_t i = 0; i < out.size(); ++i) out[i] *= scale * weight[0][i];
    return out;
}

void add(Vector& to, const Vector& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

// RoPE of all heads: element i of a head is rotated together with element i + head_dim / 2.
void rotate(Vector& x, const Vector& frequencies, int position) {
    const size_t half = frequencies.size();
    for (size_t head = 0; head < x.size(); head += 2 * half)
        for (size_t i = 0; i < half; ++i) {
            const double angle = position * frequencies[i];
            const double a = x[head + i], b = x[head + half + i];
            x[head + i] = a * std::cos(angle) - b * std::sin(angle);
            x[head + half + i] = b * std::cos(angle) + a * std::sin(angle);
        }
}

// RoPE scaling of Llama 3.1: wavelengths above trained / low are stretched by the factor, those
// below trained / high are kept. In between, both are mixed linearly in the number of waves within
// the trained context.
double stretched(double frequency, const RopeScaling& scaling) {
    const double waves = scaling.trained * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp((waves - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
    return kept * frequency + (1 - kept) * frequency / scaling.factor;
}

// Normalises each head separately, if the model has such a norm.
void norm_heads(Vector& x, const Exact& weight, double epsilon) {
    for (size_t first = 0; weight.cols > 0 && first < x.size(); first += size_t(weight.cols)) {
        const auto head = x.begin() + long(first);
        const Vector out = normed(Vector(head, head + weight.cols), weight, epsilon);
        std::copy(out.begin(), out.end(), head);
    }
}

}  // namespace

std::vector<double> rope_frequencies(double theta, int head_dim, const RopeScaling& scaling) {
    Vector frequencies;
    for (int i = 0; i < head_dim; i += 2) {
        double frequency = std::pow(theta, -double(i) / head_dim);
        if (scaling.kind == RopeScaling::Kind::linear) frequency /= scaling.factor;
        if (scaling.kind == RopeScaling::Kind::llama3) frequency = stretched(frequency, scaling);
        frequencies.push_back(frequency);
    }
    return frequencies;
}

Exact Eagle3Run::read(const Exact& taps, const std::vector<Row>& rows) {
    Exact states(taps.rows, head_.fc.rows);
    for (int m = 0; m < taps.rows; ++m) {
        Vector tapped = row_of(taps, m);
        const size_t columns = tapped.size() / std::max<size_t>(1, head_.tap_norms.size());
        for (size_t i = 0; i < head_.tap_norms.size(); ++i) {
            double* tap = tapped.data() + i * columns;
            const Vector normal =
                normed(Vector(tap, tap + columns), head_.tap_norms[i], head_.epsilon);
            std::copy(normal.begin(), normal.end(), tap);
        }
        if (head_.features_norm.cols > 0)
            tapped = normed(tapped, head_.features_norm, head_.epsilon);
        const Vector state = run(product(head_.fc, tapped), rows[size_t(m)]);
        std::copy(state.begin(), state.end(), states[m]);
    }
    return states;
}

Exact Eagle3Run::forward(const Exact& parents, const std::vector<Row>& rows) {
    Exact states(parents.rows, parents.cols);
    for (int m = 0; m < parents.rows; ++m) {
        const Vector state = run(row_of(parents, m), rows[size_t(m)]);
        std::copy(state.begin(), state.end(), states[m]);
    }
    return states;
}

Exact Eagle3Run::logits(const Exact& states) const {
    Exact out(states.rows, head_.lm_head.rows);
    for (int m = 0; m < states.rows; ++m) {
        Vector state = row_of(states, m);
        if (!head_.feeds_normed) state = normed(state, head_.output_norm, head_.epsilon);
        const Vector logits = product(head_.lm_head, state);
        std::copy(logits.begin(), logits.end(), out[m]);
    }
    return out;
}

Vector Eagle3Run::run(const Vector& state, const Row& row) {
    const Vector normed_state = normed(state, head_.hidden_norm, head_.epsilon);
    Vector input = normed(row_of(head_.embedding, row.token), head_.input_norm, head_.epsilon);
    input.insert(input.end(), normed_state.begin(), normed_state.end());
    Vector out = head_.adds_to_normed ? normed_state : state;
    add(out, product(head_.o, attend(input, row), head_.o_bias));

    const Vector mlp_input = normed(out, head_.ffn_norm, head_.epsilon);
    Vector gated = product(head_.gate, mlp_input, head_.gate_bias);
    const Vector up = product(head_.up, mlp_input, head_.up_bias);
    for (size_t i = 0; i < gated.size(); ++i) gated[i] *= up[i] / (1 + std::exp(-gated[i]));
    add(out, product(head_.down, gated, head_.down_bias));
    return head_.feeds_normed ? normed(out, head_.output_norm, head_.epsilon) : out;
}

Vector Eagle3Run::attend(const Vector& input, const Row& row) {
    const size_t dim = 2 * head_.frequencies.size();
    Vector q = product(head_.q, input, head_.q_bias), k = product(head_.k, input, head_.k_bias);
    norm_heads(q, head_.q_norm, head_.epsilon);
    norm_heads(k, head_.k_norm, head_.epsilon);
    rotate(q, head_.frequencies, row.position);
    rotate(k, head_.frequencies, row.position);
    std::vector<int> seen = row.seen;
    seen.push_back(int(keys_.size()));
    keys_.push_back(k);
    values_.push_back(product(head_.v, input, head_.v_bias));

    Vector mixed(q.size());
    for (int head = 0; head < head_.heads; ++head) {
        const size_t to = size_t(head) * dim;
        const size_t from = size_t(head / (head_.heads / head_.kv_heads)) * dim;
        Vector weights;
        for (const int other : seen) {
            double dot = 0;
            for (size_t d = 0; d < dim; ++d) dot += q[to + d] * keys_[size_t(other)][from + d];
            weights.push_back(std::exp(dot / std::sqrt(double(dim))));
        }
        double total = 0;
        for (const double weight : weights) total += weight;
        for (size_t i = 0; i < seen.size(); ++i)
            for (size_t d = 0; d < dim; ++d)
                mixed[to + d] += weights[i] / total * values_[size_t(seen[i])][from + d];
    }
    return mixed;
}

}  // namespace aerie::reference
