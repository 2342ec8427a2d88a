#include "train/batch.h"

#include <algorithm>

namespace aerie::train {

namespace {

// Appends value(sequence, row) for each row of each sequence.
template <class Value>
std::vector<int> each_row(const TrainingTexts& texts, const Value& value) {
    std::vector<int> values;
    for (const std::vector<int>& tokens : texts.tokens)
        for (int i = 0; i + 1 < int(tokens.size()); ++i) values.push_back(value(tokens, i));
    return values;
}

}  // namespace

int TrainingTexts::rows() const {
    return all_tokens() - sequences();
}

int TrainingTexts::all_tokens() const {
    size_t count = 0;
    for (const std::vector<int>& sequence : tokens) count += sequence.size();
    return int(count);
}

std::vector<int> TrainingTexts::first_rows() const {
    std::vector<int> first = {0};
    for (const std::vector<int>& sequence : tokens)
        first.push_back(first.back() + int(sequence.size()) - 1);
    return first;
}

std::vector<int> TrainingTexts::positions(int depth) const {
    return each_row(*this, [&](const std::vector<int>&, int i) { return i + depth; });
}

std::vector<int> TrainingTexts::next_tokens(int depth) const {
    return each_row(*this, [&](const std::vector<int>& sequence, int i) {
        return sequence[std::min(size_t(i + 1 + depth), sequence.size() - 1)];
    });
}

std::vector<int> counted_rows(const TrainingTexts& texts, const std::vector<bool>& can_be_said,
                              int depth) {
    std::vector<int> rows;
    const std::vector<int> first = texts.first_rows();
    for (int q = 0; q < texts.sequences(); ++q) {
        const int count = first[size_t(q) + 1] - first[size_t(q)];
        for (int i = 0; i < count; ++i) {
            const int at = first[size_t(q)] + i + depth;
            const bool counts = i + depth < count && texts.mask[size_t(q)][size_t(i + depth)] &&
                                can_be_said[size_t(at)];
            rows.push_back(counts ? at : -1);
        }
    }
    return rows;
}

CountedRows::CountedRows(std::span<const int> counted) {
    for (size_t r = 0; r < counted.size(); ++r) {
        if (counted[r] < 0) continue;
        rows.push_back(int(r));
        targets.push_back(counted[r]);
    }
}

}  // namespace aerie::train
