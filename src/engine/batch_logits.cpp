// Logits on the host: log-probabilities of choices, and the caller's edits before a choice.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "engine/batch.h"

namespace aerie {

// `first` is the row of logits that belongs to node 0.
void Batch::read_logprobs(const Sequence& text, std::span<const int> nodes, int first,
                          CycleOutput& output) {
    if (!text.answer().with_logprobs) return;
    for (size_t i = 0; i < nodes.size(); ++i) {
        const std::span<const float> logits = raw_logits(first + nodes[i]);
        const double logprob = log_probability(logits, output.tokens[i]);
        if (std::isnan(logprob))
            throw Error("the model computed NaN or infinity; its weights are damaged");
        output.logprobs.push_back(float(logprob));
        for (const TokenLogprob& other : likeliest(logits, text.answer().alternatives))
            output.alternatives.push_back(other);
    }
}

// The model's logits of a row before any edit; valid until the next call.
std::span<const float> Batch::raw_logits(int row) {
    if (size_t(row) < unedited_.size() && !unedited_[size_t(row)].empty())
        return unedited_[size_t(row)];
    be_.read(t_.logits.row_range(row, 1), logits_.data());
    return logits_;
}

bool Batch::is_forbidden(int row) const {
    return std::find(forbidden_.begin(), forbidden_.end(), row) != forbidden_.end();
}

// Ends the path before a node at which an edit forbids every token. It is not known yet whether the
// text continues from that node: if so, the node is the root of the next cycle, and this becomes an
// error. `first` is the cycle's first row of logits.
void Batch::end_where_forbidden(Cycle& cycle, int first) const {
    DepthList<int>& nodes = cycle.path.nodes;
    const auto found = std::find_if(nodes.begin(), nodes.end(),
                                    [&](int node) { return is_forbidden(first + node); });
    if (found == nodes.end()) return;
    if (found == nodes.begin()) throw Error(kAllForbidden);
    cycle.path.next = cycle.tree.tokens[size_t(*found)];
    nodes.resize(size_t(found - nodes.begin()));
}

void Batch::edit_logits(std::span<const Cycle> cycles) {
    unedited_.clear();
    forbidden_.clear();
    int first = 0;
    for (const Cycle& cycle : cycles) {
        const bool edits = bool(cycle.text->answer().edit_logits);
        for (int node = 0; edits && node < cycle.tree.size(); ++node) {
            const std::span<const int> text = cycle.text->tokens();
            edited_text_.assign(text.begin(), text.end());
            const PathTokens path = path_tokens(cycle.tree, node);
            std::reverse_copy(path.begin(), path.end(), std::back_inserter(edited_text_));
            edit_logits(*cycle.text, edited_text_, first + node);
        }
        first += cycle.tree.size();
    }
}

// Lets the caller edit the row of logits that follows these tokens.
void Batch::edit_logits(const Sequence& text, std::span<const int> tokens, int row) {
    const AnswerOptions& answer = text.answer();
    if (!answer.edit_logits) return;
    const Tensor logits = t_.logits.row_range(row, 1);
    be_.read(logits, logits_.data());
    if (answer.with_logprobs) {
        unedited_.resize(std::max(unedited_.size(), size_t(row) + 1));
        unedited_[size_t(row)] = logits_;
    }
    answer.edit_logits(tokens, logits_);
    // The text may not go through such a node. Equal logits give it some choice, which is not used.
    constexpr float kForbids = -std::numeric_limits<float>::infinity();
    if (std::none_of(logits_.begin(), logits_.end(), [](float x) { return x > kForbids; })) {
        forbidden_.push_back(row);
        std::fill(logits_.begin(), logits_.end(), 0.0f);
    }
    be_.write(logits, logits_.data());
}

}  // namespace aerie
