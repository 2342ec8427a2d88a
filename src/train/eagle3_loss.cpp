#include "train/eagle3_loss.h"

#include <cmath>

namespace aerie::train {

namespace {

constexpr int kLogitRows = 256;  // rows of logits that exist at a time

}  // namespace

Eagle3Loss::Eagle3Loss(TrainingDevice& device, TrainedHead& head, Matrix embedding,
                       const TrainingTimeTest& test, int max_rows)
    : device_(device),
      head_(head),
      embedding_(std::move(embedding)),
      test_(test),
      layer_(device, head, max_rows),
      depths_(size_t(test.depths)) {
    const int hidden = head.shape().hidden;
    const auto matrix = [&](int cols) { return device.allocate(max_rows, cols); };
    for (int s = 0; s < test.depths; ++s) {
        passes_.push_back(layer_.make_pass(max_rows));
        scratch_.push_back({matrix(hidden), matrix(1), matrix(1), matrix(1), matrix(hidden)});
    }
    normed_ = matrix(hidden);
    dnormed_ = matrix(hidden);
    dx_ = matrix(2 * hidden);
    dhidden_ = matrix(hidden);
    judged_ = device.allocate(std::min(kLogitRows, max_rows), hidden);
    logits_ = device.allocate(judged_.rows, head.shape().draft_vocab);
}

double Eagle3Loss::run(const TrainingTexts& texts, const TargetOutputs& target, Gradient gradient) {
    const int rows = texts.rows();
    for (int s = 0; s < test_.depths; ++s) {
        forward(texts, target, s, rows);
        judge(texts, target, s, rows, gradient);
    }
    for (int s = gradient == Gradient::yes ? test_.depths : 0; s-- > 0;)
        backward(texts, target, s, rows);
    double loss = 0;
    for (int s = 0; s < test_.depths; ++s)
        loss += std::pow(test_.weight, s) * depths_[size_t(s)].sum / texts.all_tokens();
    return loss;
}

void Eagle3Loss::forward(const TrainingTexts& texts, const TargetOutputs& target, int depth,
                         int rows) {
    const HeadShape& shape = head_.shape();
    std::vector<LayerPass> passes;
    for (int s = 0; s <= depth; ++s) passes.push_back(passes_[size_t(s)].first_rows(rows));
    LayerPass& pass = passes.back();
    Depth& own = scratch_[size_t(depth)];
    const auto of = [&](const Matrix& m) { return m.row_range(0, rows); };
    if (depth == 0)
        device_.multiply(Product::a_bt, pass.hidden, target.features, head_.fc.value, false);
    else {
        device_.fill(pass.hidden, 0);
        device_.add(pass.hidden, passes[size_t(depth) - 1].out);
    }
    device_.gather(of(own.embedded), embedding_, texts.next_tokens(depth));
    device_.rms_norm(pass.x.col_range(0, shape.hidden), of(own.embedded_inverse), of(own.embedded),
                     head_.input_norm.value, shape.epsilon);
    device_.rms_norm(pass.x.col_range(shape.hidden, shape.hidden), of(own.hidden_inverse),
                     pass.hidden, head_.hidden_norm.value, shape.epsilon);
    layer_.forward(passes, size_t(depth), texts);
}

void Eagle3Loss::judge(const TrainingTexts& texts, const TargetOutputs& target, int depth, int rows,
                       Gradient gradient) {
    const LayerPass pass = passes_[size_t(depth)].first_rows(rows);
    Depth& own = scratch_[size_t(depth)];
    const auto of = [&](const Matrix& m) { return m.row_range(0, rows); };
    const double weight = std::pow(test_.weight, depth) / texts.all_tokens();
    const CountedRows counted(counted_rows(texts, target.can_be_said, depth));
    device_.rms_norm(of(normed_), of(own.inverse), pass.out, head_.norm.value,
                     head_.shape().epsilon);
    DepthLoss& found = depths_[size_t(depth)] = {};
    device_.fill(of(dnormed_), 0);
    for (int first = 0; first < counted.count(); first += kLogitRows) {
        const int count = std::min(kLogitRows, counted.count() - first);
        const auto part_of = [&](const std::vector<int>& all) {
            return std::span(all).subspan(size_t(first), size_t(count));
        };
        const Matrix logits = logits_.row_range(0, count), x = judged_.row_range(0, count);
        device_.gather(x, of(normed_), part_of(counted.rows));
        device_.multiply(Product::a_bt, logits, x, head_.lm_head.value, false);
        const CrossEntropy part =
            device_.cross_entropy(logits, target.targets, part_of(counted.targets), weight);
        found.sum += part.loss;
        found.rows += part.rows;
        found.hits += part.hits;
        if (gradient == Gradient::no) continue;
        device_.multiply(Product::at_b, head_.lm_head.gradient, logits, x, true);
        device_.multiply(Product::a_b, x, logits, head_.lm_head.value, false);
        device_.scatter(of(dnormed_), x, part_of(counted.rows));
    }
    if (gradient == Gradient::no) return;
    device_.fill(of(own.dout), 0);
    device_.rms_norm_back(of(own.dout), head_.norm.gradient, of(dnormed_), of(own.inverse),
                          pass.out, head_.norm.value);
}

void Eagle3Loss::backward(const TrainingTexts& texts, const TargetOutputs& target, int depth,
                          int rows) {
    const HeadShape& shape = head_.shape();
    std::vector<LayerPass> passes;
    for (int s = 0; s <= depth; ++s) passes.push_back(passes_[size_t(s)].first_rows(rows));
    LayerPass& pass = passes.back();
    Depth& own = scratch_[size_t(depth)];
    const auto of = [&](const Matrix& m) { return m.row_range(0, rows); };
    layer_.backward(passes, size_t(depth), texts, of(own.dout), of(dx_), of(dhidden_));
    device_.rms_norm_back({}, head_.input_norm.gradient, of(dx_).col_range(0, shape.hidden),
                          of(own.embedded_inverse), of(own.embedded), head_.input_norm.value);
    device_.rms_norm_back(of(dhidden_), head_.hidden_norm.gradient,
                          of(dx_).col_range(shape.hidden, shape.hidden), of(own.hidden_inverse),
                          pass.hidden, head_.hidden_norm.value);
    if (depth > 0)
        device_.add(of(scratch_[size_t(depth) - 1].dout), of(dhidden_));
    else
        device_.multiply(Product::at_b, head_.fc.gradient, of(dhidden_), target.features, true);
}

}  // namespace aerie::train
