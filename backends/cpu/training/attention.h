// Attention of training-time test for one head of one sequence, and its gradient, in blocks of
// query rows: no more than kBlock rows of scores exist at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cpu/training/blas.h"
#include "cpu/training/vectors.h"

namespace aerie::cpu {

// The rows of a head within a matrix of several heads.
template <class Real>
struct HeadRows {
    Real* data;
    int64_t stride;
    int rows, cols;

    Real* operator[](int row) const { return data + row * stride; }
};

template <class Real>
struct AttentionGradients {
    HeadRows<Real> dq;                           // out
    std::vector<HeadRows<Real>> dkeys, dvalues;  // added to
    HeadRows<Real> dout, out, lse;
};

template <class Real>
class AttentionPass {
  public:
    AttentionPass(HeadRows<Real> q, std::vector<HeadRows<Real>> keys,
                  std::vector<HeadRows<Real>> values)
        : q_(q),
          keys_(std::move(keys)),
          values_(std::move(values)),
          scale_(1 / std::sqrt(Real(q.cols))),
          scores_(size_t(kBlock) * size_t(q.rows)),
          own_(size_t(kBlock) * keys_.size()) {}

    void forward(HeadRows<Real> out, HeadRows<Real> lse) {
        each_block([&](int first, int count) {
            const int seen = first + count;
            score(first, count);
            for (int i = 0; i < count; ++i) {
                Real* const row = scores(i);
                Real* const depth_scores = own_scores(i);
                const int columns = first + i + 1;
                Real max = row[largest(row, columns)];
                for (size_t j = 1; j < keys_.size(); ++j) max = std::max(max, depth_scores[j]);
                exponentials(row, row, max, Real(1), columns);
                Real sum = Real(sum_of(columns, [&](int c) { return double(row[c]); }));
                for (size_t j = 1; j < keys_.size(); ++j)
                    sum += depth_scores[j] = std::exp(depth_scores[j] - max);
                lse[first + i][0] = max + std::log(sum);
                for (int c = 0; c < columns; ++c) row[c] /= sum;
                for (size_t j = 1; j < keys_.size(); ++j) depth_scores[j] /= sum;
                std::fill(row + columns, row + seen, Real(0));
            }
            gemm(false, false, count, q_.cols, seen, scores(0), q_.rows, values_[0].data,
                 values_[0].stride, Real(0), out[first], out.stride);
            for (int i = 0; i < count; ++i)
                for (size_t j = 1; j < keys_.size(); ++j)
                    for (int d = 0; d < q_.cols; ++d)
                        out[first + i][d] += own_scores(i)[j] * values_[j][first + i][d];
        });
    }

    // With P = exp(S - lse): dV += P^T dO, dP = dO V^T, dS = P (dP - sum(dO O)), dQ = dS K, dK +=
    // dS^T Q.
    void backward(const AttentionGradients<Real>& g) {
        std::vector<Real> slopes(scores_.size());
        each_block([&](int first, int count) {
            const int seen = first + count, width = q_.cols;
            score(first, count);
            for (int i = 0; i < count; ++i) {
                Real* const row = scores(i);
                const Real lse = g.lse[first + i][0];
                exponentials(row, row, lse, Real(1), first + i + 1);
                std::fill(row + first + i + 1, row + seen, Real(0));
                for (size_t j = 1; j < keys_.size(); ++j)
                    own_scores(i)[j] = std::exp(own_scores(i)[j] - lse);
            }
            gemm(true, false, seen, width, count, scores(0), q_.rows, g.dout[first], g.dout.stride,
                 Real(1), g.dvalues[0].data, g.dvalues[0].stride);
            gemm(false, true, count, seen, width, g.dout[first], g.dout.stride, values_[0].data,
                 values_[0].stride, Real(0), slopes.data(), q_.rows);
            for (int i = 0; i < count; ++i) {
                const int r = first + i;
                Real* const slope = slopes.data() + int64_t(i) * q_.rows;
                const Real along = dot(g.dout[r], g.out[r]);
                for (int c = 0; c < seen; ++c)
                    slope[c] = scores(i)[c] * (slope[c] - along) * scale_;
            }
            gemm(false, false, count, width, seen, slopes.data(), q_.rows, keys_[0].data,
                 keys_[0].stride, Real(0), g.dq[first], g.dq.stride);
            gemm(true, false, seen, width, count, slopes.data(), q_.rows, q_[first], q_.stride,
                 Real(1), g.dkeys[0].data, g.dkeys[0].stride);
            for (int i = 0; i < count; ++i)
                for (size_t j = 1; j < keys_.size(); ++j)
                    own_gradient(g, first + i, j, own_scores(i)[j]);
        });
    }

  private:
    static constexpr int kBlock = 64;

    Real* scores(int i) { return scores_.data() + int64_t(i) * q_.rows; }
    Real* own_scores(int i) { return own_.data() + size_t(i) * keys_.size(); }
    Real dot(const Real* a, const Real* b) const {
        Real sum = 0;
        for (int d = 0; d < q_.cols; ++d) sum += a[d] * b[d];
        return sum;
    }

    template <class Body>
    void each_block(const Body& body) {
        for (int first = 0; first < q_.rows; first += kBlock)
            body(first, std::min(kBlock, q_.rows - first));
    }

    // Scaled scores of some rows: all rows of depth 0 up to the last of them, and the row's own key
    // of each later depth.
    void score(int first, int count) {
        gemm(false, true, count, first + count, q_.cols, q_[first], q_.stride, keys_[0].data,
             keys_[0].stride, Real(0), scores(0), q_.rows);
        for (int i = 0; i < count; ++i) {
            for (int c = 0; c < first + count; ++c) scores(i)[c] *= scale_;
            for (size_t j = 1; j < keys_.size(); ++j)
                own_scores(i)[j] = dot(q_[first + i], keys_[j][first + i]) * scale_;
        }
    }

    // The part of the row's own key and value of depth j, which it attends to with weight p.
    void own_gradient(const AttentionGradients<Real>& g, int r, size_t j, Real p) {
        const Real slope = p * (dot(g.dout[r], values_[j][r]) - dot(g.dout[r], g.out[r])) * scale_;
        for (int d = 0; d < q_.cols; ++d) {
            g.dvalues[j][r][d] += p * g.dout[r][d];
            g.dq[r][d] += slope * keys_[j][r][d];
            g.dkeys[j][r][d] += slope * q_[r][d];
        }
    }

    HeadRows<Real> q_;
    std::vector<HeadRows<Real>> keys_, values_;
    Real scale_;
    std::vector<Real> scores_;  // [kBlock, rows]
    std::vector<Real> own_;     // [kBlock, depths]; element 0 is unused
};

}  // namespace aerie::cpu
