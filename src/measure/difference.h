// How far some values are from others: relative errors, bits, divergence of distributions.
#pragma once

#include <cstdint>
#include <span>

namespace aerie {

// Of a device's rows from the reference's; rows are added one by one.
struct Difference {
    int64_t values = 0;
    int64_t equal = 0;       // of them: the same bits
    int64_t not_finite = 0;  // of the device's: NaN or infinite
    int64_t reference_not_finite = 0;
    double worst_row = 0;  // largest |device - reference| / |reference| of a row (2-norms)

    void add_row(std::span<const float> reference, std::span<const float> device);
    // The same ratio over everything that was added.
    double relative() const;
    bool identical() const { return equal == values; }

  private:
    double error_squares_ = 0, reference_squares_ = 0;
};

// The larger of two; NaN if either is.
double worse(double a, double b);

// KL(p || q) of softmax(p logits) and softmax(q logits), in nats; NaN where a logit is.
double divergence(std::span<const float> p_logits, std::span<const float> q_logits);

// The likeliest token as the `sample` op picks it: ties go to the lowest id, NaN is below -inf; -1
// where every logit is NaN.
int likeliest(std::span<const float> logits);

}  // namespace aerie
