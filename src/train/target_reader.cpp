#include "train/target_reader.h"

#include <algorithm>
#include <cmath>

#include "backend/tensor_plan.h"
#include "core/error.h"
#include "core/parallel_for.h"

namespace aerie::train {

namespace {

constexpr int kPassRows = 64;

KvShape shape_of(const ModelConfig& config, int positions) {
    return {.layers = config.layers,
            .columns = config.kv_columns(),
            .slots = positions,
            .sequences = 1};
}

// The softmax of `logits` over some ids. Returns the best token of all.
int restricted_softmax(std::span<const float> logits, std::span<const int> ids,
                       std::span<float> out) {
    const auto best = std::max_element(logits.begin(), logits.end());
    float max = logits[size_t(ids[0])];
    for (const int id : ids) max = std::max(max, logits[size_t(id)]);
    double sum = 0;
    for (size_t i = 0; i < ids.size(); ++i)
        sum += double(out[i] = std::exp(logits[size_t(ids[i])] - max));
    for (float& p : out) p = float(double(p) / sum);
    return int(best - logits.begin());
}

}  // namespace

DraftVocabulary DraftVocabulary::all(int vocab) {
    DraftVocabulary made{{}, std::vector<bool>(size_t(vocab), true)};
    for (int id = 0; id < vocab; ++id) made.ids.push_back(id);
    return made;
}

DraftVocabulary DraftVocabulary::most_frequent(const TrainingTexts& texts, int vocab, int size) {
    std::vector<int64_t> counts(static_cast<size_t>(vocab));
    for (size_t q = 0; q < texts.tokens.size(); ++q)
        for (size_t i = 0; i < texts.tokens[q].size(); ++i)
            if (texts.mask[q][i]) ++counts.at(size_t(texts.tokens[q][i]));
    std::vector<int> ids = all(vocab).ids;
    std::stable_sort(ids.begin(), ids.end(),
                     [&](int a, int b) { return counts[size_t(a)] > counts[size_t(b)]; });
    ids.resize(size_t(std::min(size, vocab)));
    std::sort(ids.begin(), ids.end());
    return of(std::move(ids), vocab);
}

DraftVocabulary DraftVocabulary::of(std::vector<int> ids, int vocab) {
    DraftVocabulary made{std::move(ids), std::vector<bool>(size_t(vocab))};
    for (const int id : made.ids) made.has[size_t(id)] = true;
    return made;
}

TargetReader::TargetReader(Backend& backend, Target& target, TrainingDevice& device, int positions,
                           Taps taps, bool with_goals, FairMutex* mutex)
    : backend_(backend),
      target_(target),
      device_(device),
      taps_(std::move(taps)),
      with_goals_(with_goals),
      mutex_(mutex),
      tapped_(size_t(positions) * taps_.size() * size_t(target.config().hidden)),
      scores_(size_t(positions) * size_t(target.config().vocab)) {
    const std::unique_lock lock = lock_mutex();
    memory_ = std::make_unique<Memory>(backend, target.config(), positions, int(taps_.size()));
}

TargetReader::~TargetReader() {
    const std::unique_lock lock = lock_mutex();
    memory_.reset();
}

TargetReader::Memory::Memory(Backend& backend, const ModelConfig& config, int positions, int taps)
    : kv(backend, shape_of(config, positions)) {
    TensorPlan plan;
    plan.add(rows, DType::I32, kPassRows, kRowInts);
    plan.add(features, DType::F32, kPassRows, taps * config.hidden);
    plan.add(logits, DType::F32, kPassRows, config.vocab);
    buffer = plan.allocate(backend);
}

std::unique_lock<FairMutex> TargetReader::lock_mutex() const {
    return mutex_ ? std::unique_lock(*mutex_) : std::unique_lock<FairMutex>();
}

TargetOutputs TargetReader::read(const TrainingTexts& texts, const DraftVocabulary& vocabulary) {
    const int rows = texts.rows(), width = memory_->features.cols, vocab = target_.config().vocab;
    TargetOutputs made;
    // Fresh memory for each batch took a tenth of the time of a training and more.
    const auto room = [&](Matrix& kept, int cols) {
        if (!kept || kept.rows < rows || kept.cols != cols) kept = device_.allocate(rows, cols);
        return kept.row_range(0, rows);
    };
    made.features = room(kept_.features, width);
    if (with_goals_) made.goals = room(kept_.goals, width);
    made.targets = room(kept_.targets, vocabulary.size());
    target_rows_.resize(size_t(rows) * size_t(vocabulary.size()));
    std::vector<char> can_be_said(static_cast<size_t>(rows));
    int first = 0;
    for (size_t q = 0; q < texts.tokens.size(); ++q) {
        const std::vector<int>& tokens = texts.tokens[q];
        const auto& mask = texts.mask[q];
        run(tokens, mask);
        const int count = int(tokens.size()) - 1;
        const auto part = [&](int from) {
            return std::span<const float>(tapped_).subspan(size_t(from) * size_t(width),
                                                           size_t(count) * size_t(width));
        };
        device_.write(made.features.row_range(first, count), part(0));
        if (with_goals_) device_.write(made.goals.row_range(first, count), part(1));
        parallel_for(count, 8, [&](int64_t begin, int64_t end) {
            for (size_t i = size_t(begin); i < size_t(end); ++i) {
                if (!mask[i]) continue;
                const size_t r = size_t(first) + i;
                const int best = restricted_softmax(
                    std::span(scores_).subspan((i + 1) * size_t(vocab), size_t(vocab)),
                    vocabulary.ids,
                    std::span(target_rows_)
                        .subspan(r * size_t(vocabulary.size()), size_t(vocabulary.size())));
                can_be_said[r] = vocabulary.has[size_t(best)];
            }
        });
        first += count;
    }
    device_.write(made.targets, std::span<const float>(target_rows_));
    made.can_be_said.assign(can_be_said.begin(), can_be_said.end());
    return made;
}

// Fills the first rows of tapped_, and those of scores_ from the first one on in each pass that
// counts: most of a prompt needs no logits.
void TargetReader::run(std::span<const int> tokens, const std::vector<bool>& mask) {
    check_tokens(tokens, target_.config().vocab);
    KvPages pages = memory_->kv.begin();
    pages.hold(int(tokens.size()));
    for (int first = 0; first < int(tokens.size()); first += kPassRows) {
        const int count = std::min(kPassRows, int(tokens.size()) - first);
        int scored = first;
        while (scored < first + count && (scored == 0 || !mask[size_t(scored) - 1])) ++scored;
        const int scores = first + count - scored;
        std::vector<Row> rows;
        for (int i = first; i < first + count; ++i)
            rows.push_back(causal_row(tokens[size_t(i)], i, pages.sequence()));
        const std::unique_lock lock = lock_mutex();
        const Tensor block = memory_->rows.row_range(0, count);
        backend_.write(block, rows.data());
        TargetPass pass;
        pass.rows = {block};
        pass.kv = &memory_->kv;
        pass.taps = taps_;
        pass.features = memory_->features.row_range(0, count);
        pass.logits = memory_->logits.row_range(0, scores);
        target_.forward(pass);
        backend_.read(pass.features,
                      tapped_.data() + size_t(first) * size_t(memory_->features.cols));
        if (scores == 0) continue;
        backend_.read(pass.logits, scores_.data() + size_t(scored) * size_t(memory_->logits.cols));
        for (int i = scored; i < first + count; ++i)
            if (!std::isfinite(scores_[size_t(i) * size_t(memory_->logits.cols)]))
                throw Error("the model computed NaN or infinite logits; its weights are damaged");
    }
}

}  // namespace aerie::train
