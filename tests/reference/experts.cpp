// Routing as in transformers: softmax over all experts, then the best k, then their share of the
// sum.
#include "reference/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace aerie::reference {

namespace {

bool comes_before(const float* logits, int a, int b) {
    const bool nan_a = std::isnan(logits[a]), nan_b = std::isnan(logits[b]);
    if (nan_a != nan_b) return nan_b;
    if (!nan_a && logits[a] != logits[b]) return logits[a] > logits[b];
    return a < b;
}

}  // namespace

Chosen choose_experts(const Matrix& logits, int k, bool normalised) {
    Chosen chosen{Indices(logits.rows, k), Exact(logits.rows, k)};
    for (int r = 0; r < logits.rows; ++r) {
        const float* row = logits[r];
        std::vector<int> ids(size_t(logits.cols), 0);
        std::iota(ids.begin(), ids.end(), 0);
        std::sort(ids.begin(), ids.end(), [&](int a, int b) { return comes_before(row, a, b); });
        const double best = row[ids[0]];
        double all = 0, some = 0;
        for (int e = 0; e < logits.cols; ++e) all += std::exp(double(row[e]) - best);
        for (int i = 0; i < k; ++i) {
            chosen.ids[r][i] = ids[size_t(i)];
            some += chosen.weights[r][i] = std::exp(double(row[ids[size_t(i)]]) - best) / all;
        }
        if (normalised)
            for (int i = 0; i < k; ++i) chosen.weights[r][i] /= some;
    }
    return chosen;
}

Indices order_of(const Indices& ids, int experts) {
    Indices order(1, ids.rows * ids.cols);
    int count = 0;
    for (int e = 0; e < experts; ++e)
        for (size_t place = 0; place < ids.data.size(); ++place)
            if (ids.data[place] == e) order[0][count++] = int(place);
    return order;
}

std::vector<ExpertTile> tiles_of(const Indices& ids, int experts) {
    std::vector<ExpertTile> tiles;
    int first = 0;
    for (int e = 0; e < experts; ++e)
        for (int left = int(std::count(ids.data.begin(), ids.data.end(), e)); left > 0;) {
            tiles.push_back({e, first, std::min(left, kExpertTileRows)});
            left -= tiles.back().count;
            first += tiles.back().count;
        }
    return tiles;
}

}  // namespace aerie::reference
