#include "train/eagle2_loss.h"

#include <algorithm>

namespace aerie::train {

namespace {

constexpr int kEagle2LogitRows = 64;  // rows of logits that exist at a time

}  // namespace

Eagle2Loss::Eagle2Loss(TrainingDevice& device, TrainedHead& head, Matrix embedding, Matrix lm_head,
                       int max_rows)
    : device_(device),
      head_(head),
      embedding_(std::move(embedding)),
      lm_head_(std::move(lm_head)),
      layer_(device, head, max_rows),
      pass_(layer_.make_pass(max_rows)) {
    const int hidden = head.shape().hidden;
    pairs_ = device.allocate(max_rows, 2 * hidden);
    judged_ = device.allocate(std::min(kEagle2LogitRows, max_rows), hidden);
    logits_ = device.allocate(judged_.rows, lm_head_.rows);
    dout_ = device.allocate(max_rows, hidden);
    dclass_ = device.allocate(max_rows, hidden);
    dx_ = device.allocate(max_rows, hidden);
    dhidden_ = device.allocate(max_rows, hidden);
}

double Eagle2Loss::run(const TrainingTexts& texts, const TargetOutputs& target, Gradient gradient) {
    const int rows = texts.rows(), hidden = head_.shape().hidden;
    const auto of = [&](const Matrix& m) { return m.row_range(0, rows); };
    LayerPass passes[] = {pass_.first_rows(rows)};
    LayerPass& pass = passes[0];
    const Matrix pairs = of(pairs_);
    device_.gather(pairs.col_range(0, hidden), embedding_, texts.next_tokens(0));
    const Matrix features = pairs.col_range(hidden, hidden);
    device_.fill(features, 0);
    device_.add(features, target.features);
    device_.multiply(Product::a_bt, pass.x, pairs, head_.fc.value, false);
    device_.add_bias(pass.x, head_.fc_bias.value);
    device_.fill(pass.hidden, 0);
    device_.add(pass.hidden, pass.x);
    layer_.forward(passes, 0, texts);

    const std::vector<int> counted = counted_rows(texts, std::vector<bool>(size_t(rows), true), 0);
    const CountedRows judged(counted);
    const double count = judged.count();
    classification_ = {};
    if (count == 0) return regression_ = 0;
    regression_ = device_.smooth_l1(of(dout_), pass.out, target.goals, counted, 1 / count) / count;
    device_.fill(of(dclass_), 0);
    for (int first = 0; first < judged.count(); first += logits_.rows) {
        const int some = std::min(logits_.rows, judged.count() - first);
        const auto part_of = [&](const std::vector<int>& all) {
            return std::span(all).subspan(size_t(first), size_t(some));
        };
        const Matrix logits = logits_.row_range(0, some), x = judged_.row_range(0, some);
        device_.gather(x, pass.out, part_of(judged.rows));
        device_.multiply(Product::a_bt, logits, x, lm_head_, false);
        const CrossEntropy part = device_.cross_entropy(
            logits, target.targets, part_of(judged.targets), kClassWeight / count);
        classification_.sum += part.loss;
        classification_.rows += part.rows;
        classification_.hits += part.hits;
        if (gradient == Gradient::no) continue;
        device_.multiply(Product::a_b, x, logits, lm_head_, false);
        device_.scatter(of(dclass_), x, part_of(judged.rows));
    }
    const double loss = regression_ + kClassWeight * classification_.sum / count;
    if (gradient == Gradient::no) return loss;
    device_.add(of(dout_), of(dclass_));
    layer_.backward(passes, 0, texts, of(dout_), of(dx_), of(dhidden_));
    device_.add(of(dhidden_), of(dx_));
    device_.sum_rows(head_.fc_bias.gradient, of(dhidden_));
    device_.multiply(Product::at_b, head_.fc.gradient, of(dhidden_), pairs, true);
    return loss;
}

}  // namespace aerie::train
