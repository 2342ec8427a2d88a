// Differences between values: relative errors, equal bits, divergence of distributions.
#pragma once

#include <cstdint>
#include <span>

namespace aerie {

// The difference of a device's rows from the reference's; rows are added one by one.
struct Difference {
    int64_t values = 0;
    int64_t equal = 0;       // values with the same bits
    int64_t not_finite = 0;  // values of the device that are NaN or infinite
    int64_t reference_not_finite = 0;
    double worst_row = 0;  // largest |device - reference| / |reference| of a row (2-norms)

    void add_row(std::span<const float> reference, std::span<const float> device);
    // The ratio of worst_row, but over all rows together.
    double relative() const;
    bool identical() const { return equal == values; }

  private:
    double error_squares_ = 0, reference_squares_ = 0;
};

// The larger of the two; NaN if either is NaN.
double worse(double a, double b);

// KL(p || q) of softmax(p logits) and softmax(q logits), in nats; NaN if a logit is NaN.
double divergence(std::span<const float> p_logits, std::span<const float> q_logits);

// The likeliest token as op Sample chooses it: ties go to the lowest id, NaN orders below -inf; -1
// if all logits are NaN.
int likeliest(std::span<const float> logits);

}  // namespace aerie
