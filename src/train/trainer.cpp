#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/error.h"

namespace aerie::train {

namespace {

// Numbers in [0, count) in an order that the seed alone decides, on every machine.
std::vector<size_t> shuffled(size_t count, uint64_t seed) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t(0));
    std::mt19937_64 rng(seed);
    for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[rng() % i]);
    return order;
}

double unit(std::mt19937_64& rng) {
    return double(rng() >> 11) * 0x1p-53;
}

// Normally distributed (Box and Muller), the same numbers on every machine.
double normal(std::mt19937_64& rng) {
    const double radius = std::sqrt(-2 * std::log(1 - unit(rng)));
    return radius * std::cos(2 * M_PI * unit(rng));
}

}  // namespace

std::vector<float> uniform_noise(size_t count, double amount, uint64_t seed) {
    std::mt19937_64 rng(seed);
    std::vector<float> noise(count);
    for (float& n : noise) n = float(amount * (2 * unit(rng) - 1));
    return noise;
}

double Evaluation::expected_tau() const {
    double tau = 1, reached = 1;
    for (const double share : agreement) tau += reached *= share;
    return tau;
}

Trainer::Trainer(TrainingDevice& device, TrainedHead& head, TargetReader& reader,
                 const DraftVocabulary& vocabulary, Matrix embedding, Matrix lm_head,
                 const TrainingPlan& plan, int max_text)
    : device_(device), head_(head), reader_(reader), vocabulary_(vocabulary), plan_(plan) {
    const int most_rows = plan.batch_rows + max_text;
    if (head.shape().draft_vocab > 0)
        eagle3_ =
            std::make_unique<Eagle3Loss>(device, head, std::move(embedding), plan.test, most_rows);
    else
        eagle2_ = std::make_unique<Eagle2Loss>(device, head, std::move(embedding),
                                               std::move(lm_head), most_rows);
}

double Trainer::rate(double way) const {
    constexpr double kFirst = 0.02;  // so that the first step changes something
    if (way < plan_.warm_up) return plan_.rate * std::max(kFirst, way / plan_.warm_up);
    const double rest = std::min(1.0, (way - plan_.warm_up) / (1 - plan_.warm_up));
    return plan_.rate *
           (plan_.final_rate + (1 - plan_.final_rate) * (1 + std::cos(M_PI * rest)) / 2);
}

// Texts are taken one after the other from an endless list: pass after pass over all texts, each in
// an order of its own. A step takes texts until it has batch_rows tokens.
TrainingTexts Trainer::chosen(const TrainingTexts& texts, int step) const {
    const size_t count = texts.tokens.size();
    int64_t before = int64_t(step) * plan_.batch_rows;
    int64_t all = 0;
    for (const std::vector<int>& tokens : texts.tokens) all += int64_t(tokens.size());
    const int64_t pass = before / all;
    before -= pass * all;
    TrainingTexts found;
    int64_t taken = 0;
    for (int64_t p = pass; taken < plan_.batch_rows; ++p) {
        const std::vector<size_t> order = shuffled(count, plan_.seed * 1'000'003 + uint64_t(p));
        for (const size_t at : order) {
            const int64_t size = int64_t(texts.tokens[at].size());
            if (before >= size) {
                before -= size;
                continue;
            }
            before = 0;
            found.tokens.push_back(texts.tokens[at]);
            found.mask.push_back(texts.mask[at]);
            taken += size;
            if (taken >= plan_.batch_rows) break;
        }
    }
    return found;
}

double Trainer::run(const TrainingTexts& texts, Gradient gradient) {
    TargetOutputs outputs = reader_.read(texts, vocabulary_);
    if (eagle3_) return eagle3_->run(texts, outputs, gradient);
    if (gradient == Gradient::yes && plan_.noise > 0) {
        const std::vector<float> noise = uniform_noise(
            outputs.features.size(), plan_.noise, plan_.seed * 7'919 + uint64_t(head_.steps()));
        const Matrix added = device_.allocate(outputs.features.rows, outputs.features.cols);
        device_.write(added, std::span<const float>(noise));
        device_.add(outputs.features, added);
    }
    return eagle2_->run(texts, outputs, gradient);
}

double Trainer::step(const TrainingTexts& texts, double way) {
    const int number = head_.steps();
    const TrainingTexts batch = chosen(texts, number);
    head_.clear_gradients();
    const double loss = run(batch, Gradient::yes);
    if (!std::isfinite(loss))
        throw Error("the loss became " + std::to_string(loss) + ": try a smaller --lr");
    head_.update({.rate = rate(way)}, plan_.clip_norm);
    tokens_ += batch.all_tokens();
    return loss;
}

Evaluation Trainer::evaluate(const TrainingTexts& texts) {
    std::vector<DepthLoss> sums;
    Evaluation found;
    int batches = 0;
    for (size_t first = 0; first < texts.tokens.size();) {
        TrainingTexts batch;
        int taken = 0;
        for (; first < texts.tokens.size() && taken < plan_.batch_rows; ++first) {
            batch.tokens.push_back(texts.tokens[first]);
            batch.mask.push_back(texts.mask[first]);
            taken += int(texts.tokens[first].size());
        }
        found.loss += run(batch, Gradient::no);
        ++batches;
        const std::span<const DepthLoss> depths =
            eagle3_ ? eagle3_->depths() : std::span(&eagle2_->classification(), 1);
        sums.resize(depths.size());
        for (size_t d = 0; d < depths.size(); ++d) {
            sums[d].rows += depths[d].rows;
            sums[d].hits += depths[d].hits;
        }
    }
    found.loss /= std::max(1, batches);
    for (const DepthLoss& depth : sums)
        found.agreement.push_back(double(depth.hits) / std::max(1, depth.rows));
    return found;
}

void initialise(TrainingDevice& device, TrainedHead& head, const DraftVocabulary& vocabulary,
                std::span<const float> lm_head, uint64_t seed) {
    constexpr double kSpread = 0.02;
    const size_t hidden = size_t(head.shape().hidden);
    std::mt19937_64 rng(seed);
    for (const Parameter& parameter : head.parameters()) {
        std::vector<float> values(parameter.value.size());
        if (parameter.name == "lm_head.weight")
            for (size_t d = 0; d < vocabulary.ids.size(); ++d)
                std::copy_n(lm_head.begin() + ptrdiff_t(size_t(vocabulary.ids[d]) * hidden), hidden,
                            values.begin() + ptrdiff_t(d * hidden));
        else if (parameter.name.ends_with("norm.weight"))
            std::fill(values.begin(), values.end(), 1.0f);
        else if (parameter.name != "fc.bias")
            for (float& value : values) value = float(kSpread * normal(rng));
        device.write(parameter.value, std::span<const float>(values));
    }
}

}  // namespace aerie::train
