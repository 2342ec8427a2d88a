// Runs the target over windows of text, some rows at a time; log-probabilities are computed on the
// host.
#include "measure/perplexity.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "backend/tensor_plan.h"
#include "core/error.h"
#include "engine/sampling.h"

namespace aerie {

namespace {

// Scores one window after the other, with its own buffers.
class WindowScorer {
  public:
    WindowScorer(Backend& be, Target& target, KvPool& kv, const PerplexityTask& task)
        : be_(be),
          target_(target),
          kv_(kv),
          pages_(kv.begin()),
          logits_row_(size_t(target.config().vocab)) {
        pages_.hold(task.window);
        TensorPlan plan;
        plan.add(rows_, DType::I32, task.pass_rows, kRowInts);
        plan.add(logits_, DType::F32, task.pass_rows, target.config().vocab);
        memory_ = plan.allocate(be);
    }

    // Negative log-likelihood of all tokens except the first.
    double nll(std::span<const int> window) {
        double sum = 0;
        const int inputs = int(window.size()) - 1;
        for (int first = 0; first < inputs; first += rows_.rows) {
            const int count = std::min(rows_.rows, inputs - first);
            forward(window, first, count);
            for (int i = 0; i < count; ++i) {
                be_.read(logits_.row_range(i, 1), logits_row_.data());
                const double log = log_probability(logits_row_, window[size_t(first + i) + 1]);
                if (!std::isfinite(log))
                    throw Error(
                        "the model computed NaN or infinite logits; its weights are damaged");
                sum -= log;
            }
        }
        return sum;
    }

  private:
    void forward(std::span<const int> window, int first, int count) {
        std::vector<Row> rows;
        for (int i = first; i < first + count; ++i)
            rows.push_back(causal_row(window[size_t(i)], i, pages_.sequence()));
        const Tensor block = rows_.row_range(0, count);
        be_.write(block, rows.data());
        TargetPass pass;
        pass.rows = {block};
        pass.kv = &kv_;
        pass.logits = logits_.row_range(0, count);
        target_.forward(pass);
    }

    Backend& be_;
    Target& target_;
    KvPool& kv_;
    KvPages pages_;
    Buffer memory_;
    Tensor rows_, logits_;
    std::vector<float> logits_row_;
};

// Calls visit(window) for every window with a token to score, until it returns false.
template <class Visit>
void each_window(const PerplexityTask& task, const Visit& visit) {
    for (const std::vector<int>& document : task.documents)
        for (size_t first = 0; first + 1 < document.size(); first += size_t(task.window)) {
            const size_t size = std::min(size_t(task.window), document.size() - first);
            if (!visit(std::span(document).subspan(first, size))) return;
        }
}

}  // namespace

double Perplexity::value() const {
    return std::exp(nll / double(tokens));
}

int64_t scored_tokens(const PerplexityTask& task) {
    int64_t tokens = 0;
    each_window(task, [&](std::span<const int> window) {
        tokens += int64_t(window.size()) - 1;
        return true;
    });
    return tokens;
}

Perplexity measure_perplexity(Backend& be, Target& target, KvPool& kv, const PerplexityTask& task) {
    const int64_t all = scored_tokens(task);
    if (all == 0) throw UsageError("the text has no token to score");
    WindowScorer scorer(be, target, kv, task);
    Perplexity result;
    each_window(task, [&](std::span<const int> window) {
        if (task.cancelled && task.cancelled()) return false;
        result.nll += scorer.nll(window);
        result.tokens += int64_t(window.size()) - 1;
        if (task.on_window) task.on_window(result.tokens, all);
        return true;
    });
    return result;
}

}  // namespace aerie
