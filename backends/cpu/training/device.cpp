#include "cpu/training/device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "backend/training_checks.h"
#include "cpu/parallel.h"
#include "cpu/training/attention.h"
#include "cpu/training/blas.h"
#include "cpu/training/vectors.h"

namespace aerie::cpu {

namespace {

// A matrix as its elements.
template <class Real>
struct View {
    Real* data;
    int rows, cols;
    int64_t stride;

    explicit View(const Matrix& m)
        : data(static_cast<Real*>(m.memory.get()) + m.offset),
          rows(m.rows),
          cols(m.cols),
          stride(m.stride) {}
    Real* operator[](int row) const { return data + row * stride; }
};

template <class Real>
class CpuTraining final : public TrainingDevice {
  public:
    explicit CpuTraining(int threads) : pool_(threads > 0 ? threads : default_threads()) {
        load_blas();
    }

    Matrix allocate(int rows, int cols) override {
        const size_t count = size_t(rows) * size_t(cols);
        return {std::shared_ptr<Real[]>(new Real[count]()), 0, rows, cols, cols};
    }

    void write(const Matrix& to, std::span<const float> dense) override { copy_in(to, dense); }
    void write(const Matrix& to, std::span<const double> dense) override { copy_in(to, dense); }

    void read(const Matrix& from, std::span<double> dense) override {
        const View<Real> view(from);
        check_copied(from, dense.size());
        for (int r = 0; r < view.rows; ++r)
            std::copy_n(view[r], view.cols, dense.begin() + int64_t(r) * view.cols);
    }

    void fill(const Matrix& out, double value) override {
        each_row(out, 1,
                 [&](const View<Real>& to, int r) { std::fill_n(to[r], to.cols, Real(value)); });
    }

    // The threads divide the rows of `out`, and each calls the BLAS for its own.
    void multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b,
                  bool accumulate) override {
        const View<Real> c(out), x(a), y(b);
        const bool a_is_transposed = form == Product::at_b, b_is_transposed = form == Product::a_bt;
        const int inner = check_multiply(form, out, a, b);
        if (inner == 0) {
            if (!accumulate) fill(out, 0);
            return;
        }
        const int grain = std::max(1, (c.rows + pool_.threads() - 1) / pool_.threads());
        pool_.run(c.rows, double(c.cols) * inner, grain, [&](int first, int last, int) {
            gemm(a_is_transposed, b_is_transposed, last - first, c.cols, inner,
                 a_is_transposed ? x.data + first : x[first], x.stride, y.data, y.stride,
                 accumulate ? Real(1) : Real(0), c[first], c.stride);
        });
    }

    void add(const Matrix& out, const Matrix& x) override {
        const View<Real> from(x);
        check_add(out, x);
        each_row(out, 1, [&](const View<Real>& to, int r) {
            for (int i = 0; i < to.cols; ++i) to[r][i] += from[r][i];
        });
    }

    void add_bias(const Matrix& out, const Matrix& bias) override {
        const View<Real> from(bias);
        check_vector(bias, out);
        each_row(out, 1, [&](const View<Real>& to, int r) {
            for (int i = 0; i < to.cols; ++i) to[r][i] += from[0][i];
        });
    }

    void sum_rows(const Matrix& out, const Matrix& x) override {
        const View<Real> to(out), from(x);
        check_vector(out, x);
        each_column_group(to.cols, from.rows, [&](int first, int last) {
            for (int r = 0; r < from.rows; ++r)
                for (int i = first; i < last; ++i) to[0][i] += from[r][i];
        });
    }

    void gather(const Matrix& out, const Matrix& table, std::span<const int> rows) override {
        const View<Real> from(table);
        check_gather(out, table, rows);
        each_row(out, 1, [&](const View<Real>& to, int r) {
            std::copy_n(from[rows[size_t(r)]], to.cols, to[r]);
        });
    }

    void scatter(const Matrix& out, const Matrix& x, std::span<const int> rows) override {
        const View<Real> to(out);
        check_scatter(out, x, rows);
        each_row(x, 1, [&](const View<Real>& from, int r) {
            std::copy_n(from[r], from.cols, to[rows[size_t(r)]]);
        });
    }

    void rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x, const Matrix& weight,
                  double epsilon) override {
        const View<Real> from(x), w(weight), inverses(inverse);
        check_rms_norm(out, inverse, x, weight);
        each_row(out, 2, [&](const View<Real>& to, int r) {
            Real squares = 0;
            for (int i = 0; i < to.cols; ++i) squares += from[r][i] * from[r][i];
            const Real scale = 1 / std::sqrt(squares / Real(to.cols) + Real(epsilon));
            inverses[r][0] = scale;
            for (int i = 0; i < to.cols; ++i) to[r][i] = from[r][i] * scale * w[0][i];
        });
    }

    // With y = x s w and s = (mean(x^2) + epsilon)^(-1/2): dx = s (g - x s^2 mean(g x)), g = dout
    // w.
    void rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                       const Matrix& inverse, const Matrix& x, const Matrix& weight) override {
        const View<Real> from(x), w(weight), inverses(inverse), d(dout), dw(dweight);
        check_rms_norm_back(dx, dweight, dout, inverse, x, weight);
        each_column_group(x.cols, x.rows, [&](int first, int last) {
            for (int r = 0; r < from.rows; ++r)
                for (int i = first; i < last; ++i)
                    dw[0][i] += d[r][i] * from[r][i] * inverses[r][0];
        });
        if (!dx) return;
        each_row(dx, 4, [&](const View<Real>& to, int r) {
            const Real scale = inverses[r][0];
            Real along = 0;
            for (int i = 0; i < to.cols; ++i) along += d[r][i] * w[0][i] * from[r][i];
            along *= scale * scale / Real(to.cols);
            for (int i = 0; i < to.cols; ++i)
                to[r][i] += scale * (d[r][i] * w[0][i] - from[r][i] * along);
        });
    }

    void rotate(const Matrix& x, std::span<const int> positions, int head_dim, double base,
                bool back) override {
        check_rotate(x, positions, head_dim);
        const int half = head_dim / 2;
        std::vector<double> rates(static_cast<size_t>(half));
        for (int i = 0; i < half; ++i) rates[size_t(i)] = std::pow(base, -2.0 * i / head_dim);
        each_row(x, 40, [&](const View<Real>& to, int r) {
            for (int i = 0; i < half; ++i) {
                const double angle = positions[size_t(r)] * rates[size_t(i)];
                const Real c = Real(std::cos(angle)),
                           s = Real(back ? -std::sin(angle) : std::sin(angle));
                for (Real* head = to[r]; head < to[r] + to.cols; head += head_dim) {
                    const Real low = head[i], high = head[i + half];
                    head[i] = low * c - high * s;
                    head[i + half] = high * c + low * s;
                }
            }
        });
    }

    void attend(const Matrix& out, const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                std::span<const Matrix> values, const TrainedAttention& shape) override {
        check_attend(out, lse, q, keys, values, shape);
        each_attended(shape, q.rows, [&](int sequence, int head) {
            AttentionPass<Real>(part(q, shape, sequence, head), parts(keys, shape, sequence, head),
                                parts(values, shape, sequence, head))
                .forward(part(out, shape, sequence, head), lse_part(lse, shape, sequence, head));
        });
    }

    void attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                     std::span<const Matrix> dvalues, const Matrix& dout, const Matrix& out,
                     const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                     std::span<const Matrix> values, const TrainedAttention& shape) override {
        check_attend_back(dq, dkeys, dvalues, dout, out, lse, q, keys, values, shape);
        each_attended(shape, q.rows, [&](int sequence, int head) {
            AttentionPass<Real>(part(q, shape, sequence, head), parts(keys, shape, sequence, head),
                                parts(values, shape, sequence, head))
                .backward({part(dq, shape, sequence, head), parts(dkeys, shape, sequence, head),
                           parts(dvalues, shape, sequence, head), part(dout, shape, sequence, head),
                           part(out, shape, sequence, head), lse_part(lse, shape, sequence, head)});
        });
    }

    void gate(const Matrix& out, const Matrix& gate_up) override {
        const View<Real> from(gate_up);
        check_gate(out, gate_up);
        each_row(out, 20, [&](const View<Real>& to, int r) {
            const Real *g = from[r], *up = g + to.cols;
            exponentials(to[r], g, Real(0), Real(-1), to.cols);
            for (int i = 0; i < to.cols; ++i) to[r][i] = g[i] / (1 + to[r][i]) * up[i];
        });
    }

    // silu'(x) = s (1 + x (1 - s)), with s = 1 / (1 + exp(-x)).
    void gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up) override {
        const View<Real> from(gate_up), d(dout);
        check_gate_back(dgate_up, dout, gate_up);
        each_row(dgate_up, 20, [&](const View<Real>& to, int r) {
            const int width = to.cols / 2;
            const Real *g = from[r], *up = g + width;
            exponentials(to[r], g, Real(0), Real(-1), width);
            for (int i = 0; i < width; ++i) {
                const Real s = 1 / (1 + to[r][i]);
                to[r][i] = d[r][i] * up[i] * s * (1 + g[i] * (1 - s));
                to[r][width + i] = d[r][i] * g[i] * s;
            }
        });
    }

    CrossEntropy cross_entropy(const Matrix& logits, const Matrix& targets,
                               std::span<const int> target_rows, double weight) override {
        const View<Real> p(targets);
        check_cross_entropy(logits, targets, target_rows);
        std::vector<double> losses(target_rows.size());
        std::vector<char> hits(target_rows.size());
        each_row(logits, 40, [&](const View<Real>& z, int r) {
            const int at = target_rows[size_t(r)];
            if (at < 0) return void(std::fill_n(z[r], z.cols, Real(0)));
            const int best = largest(z[r], z.cols);
            hits[size_t(r)] = best == largest(p[at], z.cols);
            const Real max = z[r][best];
            const double mass = sum_of(z.cols, [&](int i) { return double(p[at][i]); });
            const double said =
                sum_of(z.cols, [&](int i) { return double(p[at][i]) * double(z[r][i] - max); });
            exponentials(z[r], z[r], max, Real(1), z.cols);
            const double sum = sum_of(z.cols, [&](int i) { return double(z[r][i]); });
            const double loss = mass * std::log(sum) - said;
            const Real factor = Real(mass / sum);
            for (int i = 0; i < z.cols; ++i) z[r][i] = Real(weight) * (factor * z[r][i] - p[at][i]);
            losses[size_t(r)] = loss;
        });
        CrossEntropy found;
        for (size_t r = 0; r < losses.size(); ++r) {
            if (target_rows[r] < 0) continue;
            found.loss += losses[r];
            found.rows += 1;
            found.hits += hits[r];
        }
        return found;
    }

    double smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                     std::span<const int> target_rows, double weight) override {
        const View<Real> from(x), goal(goals);
        check_smooth_l1(dx, x, goals, target_rows);
        std::vector<double> losses(target_rows.size());
        each_row(dx, 4, [&](const View<Real>& to, int r) {
            const int at = target_rows[size_t(r)];
            if (at < 0) return void(std::fill_n(to[r], to.cols, Real(0)));
            double loss = 0;
            for (int i = 0; i < to.cols; ++i) {
                const Real d = from[r][i] - goal[at][i];
                loss += std::abs(d) < 1 ? double(d) * double(d) / 2 : std::abs(double(d)) - 0.5;
                to[r][i] = Real(weight / to.cols) * std::clamp(d, Real(-1), Real(1));
            }
            losses[size_t(r)] = loss / to.cols;
        });
        double sum = 0;
        for (const double loss : losses) sum += loss;
        return sum;
    }

    double sum_of_squares(const Matrix& x) override {
        const View<Real> view(x);
        std::vector<double> sums(size_t(view.rows));
        each_row(x, 1, [&](const View<Real>& of, int r) {
            double sum = 0;
            for (int i = 0; i < of.cols; ++i) sum += double(of[r][i]) * double(of[r][i]);
            sums[size_t(r)] = sum;
        });
        double total = 0;
        for (const double sum : sums) total += sum;
        return total;
    }

    void update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                const Matrix& square, const AdamW& rule, int step, double clip) override {
        const View<Real> g(gradient), m(mean), v(square);
        check_update(weight, gradient, mean, square);
        const double first = 1 - std::pow(rule.beta1, step),
                     second = 1 - std::pow(rule.beta2, step);
        each_row(weight, 10, [&](const View<Real>& w, int r) {
            for (int i = 0; i < w.cols; ++i) {
                const double d = double(g[r][i]) * clip;
                m[r][i] = Real(rule.beta1 * double(m[r][i]) + (1 - rule.beta1) * d);
                v[r][i] = Real(rule.beta2 * double(v[r][i]) + (1 - rule.beta2) * d * d);
                const double way =
                    double(m[r][i]) / first / (std::sqrt(double(v[r][i]) / second) + rule.epsilon);
                w[r][i] = Real(double(w[r][i]) * (1 - rule.rate * rule.decay) - rule.rate * way);
            }
        });
    }

  private:
    template <class From>
    void copy_in(const Matrix& to, std::span<const From> dense) {
        const View<Real> view(to);
        check_copied(to, dense.size());
        for (int r = 0; r < view.rows; ++r)
            for (int i = 0; i < view.cols; ++i)
                view[r][i] = Real(dense[size_t(r) * size_t(view.cols) + size_t(i)]);
    }

    // Calls body(view of m, row) for every row, with `work` multiplications or so an element.
    template <class Body>
    void each_row(const Matrix& m, double work, const Body& body) {
        const View<Real> view(m);
        pool_.run(view.rows, work * view.cols, [&](int first, int last, int) {
            for (int r = first; r < last; ++r) body(view, r);
        });
    }

    // Sums over rows: a thread has columns of its own, so that the order of a sum is always the
    // same.
    template <class Body>
    void each_column_group(int cols, int rows, const Body& body) {
        pool_.run(cols, double(rows), 16, [&](int first, int last, int) { body(first, last); });
    }

    // The query heads of a kv head add to the same gradients, so that one thread takes them all.
    template <class Body>
    void each_attended(const TrainedAttention& shape, int rows, const Body& body) {
        const int sequences = int(shape.sequences.size()) - 1, group = shape.heads / shape.kv_heads;
        pool_.run(sequences * shape.kv_heads, double(rows) * rows * shape.head_dim,
                  [&](int first, int last, int) {
                      for (int i = first; i < last; ++i)
                          for (int h = 0; h < group; ++h)
                              body(i / shape.kv_heads, i % shape.kv_heads * group + h);
                  });
    }

    // A head's rows of a sequence. The heads of keys and values are fewer.
    static HeadRows<Real> part(const Matrix& m, const TrainedAttention& shape, int sequence,
                               int head) {
        const bool is_kv =
            m.cols == shape.kv_heads * shape.head_dim && shape.kv_heads != shape.heads;
        const int column = (is_kv ? head / (shape.heads / shape.kv_heads) : head) * shape.head_dim;
        const int first = shape.sequences[size_t(sequence)];
        return {View<Real>(m)[first] + column, m.stride,
                shape.sequences[size_t(sequence) + 1] - first, shape.head_dim};
    }
    static std::vector<HeadRows<Real>> parts(std::span<const Matrix> depths,
                                             const TrainedAttention& shape, int sequence,
                                             int head) {
        std::vector<HeadRows<Real>> found;
        for (const Matrix& m : depths) found.push_back(part(m, shape, sequence, head));
        return found;
    }
    static HeadRows<Real> lse_part(const Matrix& m, const TrainedAttention& shape, int sequence,
                                   int head) {
        const int first = shape.sequences[size_t(sequence)];
        return {View<Real>(m)[first] + head, m.stride,
                shape.sequences[size_t(sequence) + 1] - first, 1};
    }

    Pool pool_;
};

}  // namespace

std::unique_ptr<TrainingDevice> open_training(Precision precision, int threads) {
    if (precision == Precision::f64) return std::make_unique<CpuTraining<double>>(threads);
    return std::make_unique<CpuTraining<float>>(threads);
}

}  // namespace aerie::cpu
