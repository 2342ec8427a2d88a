// Checks of the arguments of TrainingDevice, which every device makes before it computes: each
// throws Error if shapes or row numbers do not fit.
#pragma once

#include "backend/training.h"

namespace aerie {

void check_copied(const Matrix& m, size_t values);  // write() and read()
// Returns the length of the sums, which is K of Product.
int check_multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b);
void check_add(const Matrix& out, const Matrix& x);
void check_vector(const Matrix& vector, const Matrix& m);  // add_bias() and sum_rows()
void check_gather(const Matrix& out, const Matrix& table, std::span<const int> rows);
void check_scatter(const Matrix& out, const Matrix& x, std::span<const int> rows);
void check_rms_norm(const Matrix& out, const Matrix& inverse, const Matrix& x,
                    const Matrix& weight);
void check_rms_norm_back(const Matrix& dx, const Matrix& dweight, const Matrix& dout,
                         const Matrix& inverse, const Matrix& x, const Matrix& weight);
void check_rotate(const Matrix& x, std::span<const int> positions, int head_dim);
void check_attend(const Matrix& out, const Matrix& lse, const Matrix& q,
                  std::span<const Matrix> keys, std::span<const Matrix> values,
                  const TrainedAttention& shape);
void check_attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                       std::span<const Matrix> dvalues, const Matrix& dout, const Matrix& out,
                       const Matrix& lse, const Matrix& q, std::span<const Matrix> keys,
                       std::span<const Matrix> values, const TrainedAttention& shape);
void check_gate(const Matrix& out, const Matrix& gate_up);
void check_gate_back(const Matrix& dgate_up, const Matrix& dout, const Matrix& gate_up);
void check_cross_entropy(const Matrix& logits, const Matrix& targets,
                         std::span<const int> target_rows);
void check_smooth_l1(const Matrix& dx, const Matrix& x, const Matrix& goals,
                     std::span<const int> target_rows);
void check_update(const Matrix& weight, const Matrix& gradient, const Matrix& mean,
                  const Matrix& square);

}  // namespace aerie
