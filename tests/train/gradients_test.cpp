// The gradients of every operation, and of both losses as a whole, against central differences in
// doubles.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "cpu/training/device.h"
#include "train/eagle2_loss.h"
#include "train/eagle3_loss.h"
#include "train/needs_blas.h"

namespace aerie::test {
namespace {

using train::TargetOutputs;
using train::TrainedHead;
using train::TrainingTexts;

class Gradients : public testing::Test {
  protected:
    Matrix zeros(int rows, int cols) { return device_->allocate(rows, cols); }
    Matrix random(int rows, int cols, double around = 0, double spread = 1) {
        const Matrix m = zeros(rows, cols);
        std::normal_distribution<double> normal(around, spread);
        std::vector<double> values(m.size());
        for (double& value : values) value = normal(rng_);
        device_->write(m, std::span<const double>(values));
        return m;
    }
    std::vector<double> values(const Matrix& m) {
        std::vector<double> read(m.size());
        device_->read(m, read);
        return read;
    }
    // sum(a b), the scalar whose gradient is taken.
    double dot(const Matrix& a, const Matrix& b) {
        const std::vector<double> x = values(a), y = values(b);
        double sum = 0;
        for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
        return sum;
    }

    // Compares `gradient` of x with differences of `loss`, at up to `most` elements.
    void expect_gradient(const Matrix& x, const Matrix& gradient,
                         const std::function<double()>& loss, const std::string& what,
                         size_t most = 40) {
        std::vector<double> at = values(x);
        const std::vector<double> claimed = values(gradient);
        double largest = 0;
        for (const double value : claimed) largest = std::max(largest, std::abs(value));
        EXPECT_GT(largest, 0) << what << ": a gradient of zeros shows nothing";
        const size_t stride = std::max<size_t>(1, at.size() / most);
        for (size_t i = 0; i < at.size(); i += stride) {
            const double was = at[i], step = 1e-5;
            const auto shifted = [&](double by) {
                at[i] = was + by;
                device_->write(x, std::span<const double>(at));
                return loss();
            };
            // Two widths cancel the error of the third derivative.
            const double narrow = (shifted(step) - shifted(-step)) / (2 * step);
            const double wide = (shifted(2 * step) - shifted(-2 * step)) / (4 * step);
            shifted(0);
            EXPECT_NEAR(claimed[i], (4 * narrow - wide) / 3, 1e-6 * largest) << what << " " << i;
        }
    }

    std::unique_ptr<TrainingDevice> device_ = cpu::open_training(cpu::Precision::f64);
    std::mt19937 rng_{1};
};

TEST_F(Gradients, OfProducts) {
    const Matrix x = random(7, 5), w = random(9, 5), r = random(7, 9);
    const auto loss = [&] {
        const Matrix out = zeros(7, 9);
        device_->multiply(Product::a_bt, out, x, w, false);
        return dot(out, r);
    };
    const Matrix dx = zeros(7, 5), dw = zeros(9, 5);
    device_->multiply(Product::a_b, dx, r, w, false);
    device_->multiply(Product::at_b, dw, r, x, true);
    expect_gradient(x, dx, loss, "input");
    expect_gradient(w, dw, loss, "weight");
}

TEST_F(Gradients, OfBias) {
    const Matrix bias = random(1, 6), x = random(5, 6), r = random(5, 6), db = zeros(1, 6);
    device_->sum_rows(db, r);
    expect_gradient(
        bias, db,
        [&] {
            const Matrix out = zeros(5, 6);
            device_->add(out, x);
            device_->add_bias(out, bias);
            return dot(out, r);
        },
        "bias");
}

TEST_F(Gradients, OfNorms) {
    const Matrix x = random(5, 12), w = random(1, 12, 1, 0.2), r = random(5, 12);
    const Matrix out = zeros(5, 12), inverse = zeros(5, 1);
    const auto loss = [&] {
        device_->rms_norm(out, inverse, x, w, 1e-3);
        return dot(out, r);
    };
    loss();
    const Matrix dx = zeros(5, 12), dw = zeros(1, 12);
    device_->rms_norm_back(dx, dw, r, inverse, x, w);
    expect_gradient(x, dx, loss, "input");
    expect_gradient(w, dw, loss, "weight");
}

TEST_F(Gradients, OfRotations) {
    const std::vector<int> positions = {0, 3, 1, 7};
    const Matrix x = random(4, 16), r = random(4, 16), dx = zeros(4, 16);
    device_->add(dx, r);
    device_->rotate(dx, positions, 8, 100, true);
    expect_gradient(
        x, dx,
        [&] {
            const Matrix out = zeros(4, 16);
            device_->add(out, x);
            device_->rotate(out, positions, 8, 100, false);
            return dot(out, r);
        },
        "rotation");
}

// Two sequences, one longer than a block of rows; three depths; two query heads for a kv head.
TEST_F(Gradients, OfAttention) {
    const std::vector<int> sequences = {0, 3, 73};
    const TrainedAttention shape{4, 2, 8, sequences};
    const int rows = sequences.back();
    std::vector<Matrix> keys, values_of, dkeys, dvalues;
    for (int depth = 0; depth < 3; ++depth) {
        keys.push_back(random(rows, 16));
        values_of.push_back(random(rows, 16));
        dkeys.push_back(zeros(rows, 16));
        dvalues.push_back(zeros(rows, 16));
    }
    const Matrix q = random(rows, 32), r = random(rows, 32), out = zeros(rows, 32);
    const Matrix lse = zeros(rows, 4), dq = zeros(rows, 32);
    const auto loss = [&] {
        device_->attend(out, lse, q, keys, values_of, shape);
        return dot(out, r);
    };
    loss();
    device_->attend_back(dq, dkeys, dvalues, r, out, lse, q, keys, values_of, shape);
    expect_gradient(q, dq, loss, "queries");
    for (size_t depth = 0; depth < 3; ++depth) {
        expect_gradient(keys[depth], dkeys[depth], loss, "keys " + std::to_string(depth));
        expect_gradient(values_of[depth], dvalues[depth], loss, "values " + std::to_string(depth));
    }
}

// A row sees itself, what came before in its sequence, and its own row of later depths: no other
// key moves its output.
TEST_F(Gradients, AttentionSeesItsOwnPastOnly) {
    const std::vector<int> sequences = {0, 4, 9};
    const TrainedAttention shape{1, 1, 4, sequences};
    const Matrix q = random(9, 4), keys[] = {random(9, 4), random(9, 4)},
                 of[] = {random(9, 4), random(9, 4)};
    const auto attended = [&](int row) {
        const Matrix out = zeros(9, 4), lse = zeros(9, 1);
        device_->attend(out, lse, q, keys, of, shape);
        return values(out.row_range(row, 1));
    };
    for (int row = 0; row < 9; ++row)
        for (int key = 0; key < 9; ++key)
            for (const int depth : {0, 1}) {
                const std::vector<double> before = attended(row);
                const Matrix one = of[depth].row_range(key, 1);
                const std::vector<double> kept = values(one);
                device_->fill(one, 50);
                const bool is_moved = attended(row) != before;
                device_->write(one, std::span<const double>(kept));
                const bool same = (row < 4) == (key < 4);
                EXPECT_EQ(is_moved, depth == 0 ? same && key <= row : key == row)
                    << row << " " << key << " " << depth;
            }
}

TEST_F(Gradients, OfGates) {
    const Matrix gate_up = random(4, 10), r = random(4, 5), d = zeros(4, 10);
    device_->gate_back(d, r, gate_up);
    expect_gradient(
        gate_up, d,
        [&] {
            const Matrix out = zeros(4, 5);
            device_->gate(out, gate_up);
            return dot(out, r);
        },
        "gate");
}

// Rows of random probabilities.
Matrix distributions(TrainingDevice& device, std::mt19937& rng, int rows, int cols) {
    std::vector<double> values;
    std::uniform_real_distribution<double> uniform(0.01, 1);
    for (int r = 0; r < rows; ++r) {
        double sum = 0;
        std::vector<double> row(static_cast<size_t>(cols));
        for (double& p : row) sum += p = std::pow(uniform(rng), 3);
        for (const double p : row) values.push_back(p / sum);
    }
    const Matrix m = device.allocate(rows, cols);
    device.write(m, std::span<const double>(values));
    return m;
}

TEST_F(Gradients, OfCrossEntropy) {
    const Matrix z = random(5, 9), targets = distributions(*device_, rng_, 4, 9);
    const std::vector<int> rows = {2, -1, 0, 3, 3};
    const Matrix dz = zeros(5, 9);
    device_->add(dz, z);
    const CrossEntropy found = device_->cross_entropy(dz, targets, rows, 0.3);
    EXPECT_EQ(found.rows, 4);
    expect_gradient(
        z, dz,
        [&] {
            const Matrix copy = zeros(5, 9);
            device_->add(copy, z);
            return 0.3 * device_->cross_entropy(copy, targets, rows, 1).loss;
        },
        "logits", 45);
}

TEST_F(Gradients, OfSmoothL1) {
    const Matrix x = random(5, 8, 0, 2), goals = random(4, 8), dx = zeros(5, 8);
    const std::vector<int> rows = {2, -1, 0, 3, 3};
    const auto loss = [&] { return 0.3 * device_->smooth_l1(dx, x, goals, rows, 0.3); };
    loss();
    const Matrix gradient = zeros(5, 8);
    device_->add(gradient, dx);
    expect_gradient(x, gradient, loss, "features");
}

// Two sequences of random tokens, with a target that is random, too.
struct Toy {
    TrainingTexts texts;
    TargetOutputs outputs;
    Matrix embedding, lm_head;
};

class WholeLoss : public Gradients {
  protected:
    static constexpr int kHidden = 12, kVocab = 20, kDraft = 7;

    Toy toy(bool is_eagle3) {
        Toy made;
        std::uniform_int_distribution<int> token(0, kVocab - 1), coin(0, 3);
        for (const int length : {9, 6}) {
            std::vector<int> tokens;
            std::vector<bool> mask;
            for (int i = 0; i < length; ++i) {
                tokens.push_back(token(rng_));
                mask.push_back(coin(rng_) > 0);
            }
            made.texts.tokens.push_back(tokens);
            made.texts.mask.push_back(mask);
        }
        const int rows = made.texts.rows();
        made.outputs.features = random(rows, is_eagle3 ? 3 * kHidden : kHidden);
        made.outputs.goals = random(rows, kHidden);
        made.outputs.targets = distributions(*device_, rng_, rows, is_eagle3 ? kDraft : kVocab);
        for (int i = 0; i < rows; ++i) made.outputs.can_be_said.push_back(coin(rng_) > 0);
        made.embedding = random(kVocab, kHidden);
        made.lm_head = random(kVocab, kHidden);
        return made;
    }
    std::unique_ptr<TrainedHead> head(bool is_eagle3) {
        auto made = std::make_unique<TrainedHead>(
            *device_, train::HeadShape{.hidden = kHidden,
                                       .intermediate = 10,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_dim = 6,
                                       .taps = 3,
                                       .vocab = kVocab,
                                       .draft_vocab = is_eagle3 ? kDraft : 0});
        for (const train::Parameter& parameter : made->parameters()) {
            const bool is_norm = parameter.name.ends_with("norm.weight");
            const Matrix start =
                random(parameter.value.rows, parameter.value.cols, is_norm, is_norm ? 0.1 : 0.4);
            device_->write(parameter.value, std::span<const double>(values(start)));
        }
        return made;
    }
    void expect_gradients(TrainedHead& head, const std::function<double()>& run) {
        head.clear_gradients();
        run();
        std::vector<Matrix> claimed;
        for (const train::Parameter& parameter : head.parameters()) {
            claimed.push_back(zeros(parameter.value.rows, parameter.value.cols));
            device_->add(claimed.back(), parameter.gradient);
        }
        for (size_t p = 0; p < claimed.size(); ++p)
            expect_gradient(head.parameters()[p].value, claimed[p], run, head.parameters()[p].name,
                            12);
    }
};

TEST_F(WholeLoss, OfEagle3) {
    Toy made = toy(true);
    const auto trained = head(true);
    train::Eagle3Loss loss(*device_, *trained, made.embedding, {4, 0.8}, 20);
    expect_gradients(*trained, [&] { return loss.run(made.texts, made.outputs); });
}

TEST_F(WholeLoss, OfEagle2) {
    Toy made = toy(false);
    const auto trained = head(false);
    train::Eagle2Loss loss(*device_, *trained, made.embedding, made.lm_head, 20);
    expect_gradients(*trained, [&] { return loss.run(made.texts, made.outputs); });
}

}  // namespace
}  // namespace aerie::test
