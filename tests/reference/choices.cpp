// Choices from logits by enumeration in double precision.
#include "reference/choices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace aerie::reference {

std::vector<float> edited_logits(std::vector<float> logits, const Penalties& penalties,
                                 const std::vector<Seen>& seen, const std::vector<bool>& allowed) {
    for (size_t i = 0; i < seen.size(); ++i) {
        float& l = logits[i];
        const float times = float(seen[i].put_out);
        if (seen[i].in_prompt || times > 0)
            l = l > 0 ? l / penalties.repetition : l * penalties.repetition;
        if (times > 0) l -= penalties.frequency * times + penalties.presence;
    }
    for (size_t i = 0; i < allowed.size(); ++i)
        if (!allowed[i]) logits[i] = std::numeric_limits<float>::quiet_NaN();
    return logits;
}

int argmax(const std::vector<double>& values) {
    int best = -1;
    for (int i = 0; i < int(values.size()); ++i)
        if (!std::isnan(values[size_t(i)]) &&
            (best < 0 || values[size_t(i)] > values[size_t(best)]))
            best = i;
    return best;
}

namespace {

// The ids sorted by descending value, then by ascending id, without those of NaN values.
template <class T>
std::vector<int> sorted_ids(const std::vector<T>& values) {
    std::vector<int> ids;
    for (int i = 0; i < int(values.size()); ++i)
        if (!std::isnan(values[size_t(i)])) ids.push_back(i);
    std::stable_sort(ids.begin(), ids.end(),
                     [&](int a, int b) { return values[size_t(a)] > values[size_t(b)]; });
    return ids;
}

}  // namespace

std::vector<double> probs(const std::vector<float>& edited, const Filters& filters) {
    std::vector<double> out(edited.size(), 0.0);
    std::vector<int> ids = sorted_ids(edited);
    if (ids.empty()) return out;
    const double top = edited[size_t(ids[0])];
    if (filters.temperature == 0 || !std::isfinite(top)) {
        out[size_t(ids[0])] = 1;
        return out;
    }
    const auto mass = [&](int id) {
        return std::exp((double(edited[size_t(id)]) - top) / double(filters.temperature));
    };
    const auto total = [&] {
        double sum = 0;
        for (int id : ids) sum += mass(id);
        return sum;
    };
    if (filters.top_k > 0) ids.resize(std::min(ids.size(), size_t(filters.top_k)));
    if (filters.top_p < 1) {
        const double goal = filters.top_p * total();
        double sum = 0;
        size_t kept = 0;
        while (kept < ids.size() && (kept == 0 || sum < goal)) sum += mass(ids[kept++]);
        ids.resize(kept);
    }
    if (filters.min_p > 0) {
        const double least = std::log(std::min(1.0, double(filters.min_p)));
        std::erase_if(ids, [&](int id) {
            return double(edited[size_t(id)]) < top + filters.temperature * least;
        });
    }
    const double kept = total();
    for (int id : ids) out[size_t(id)] = mass(id) / kept;
    return out;
}

std::vector<Ranked> top_k(const std::vector<float>& edited, int k) {
    const std::vector<int> ids = sorted_ids(edited);
    double sum = 0;
    for (int id : ids) sum += std::exp(double(edited[size_t(id)]) - double(edited[size_t(ids[0])]));
    std::vector<Ranked> out;
    for (int i = 0; i < k && i < int(ids.size()); ++i)
        out.push_back({ids[size_t(i)], double(edited[size_t(ids[size_t(i)])]) -
                                           double(edited[size_t(ids[0])]) - std::log(sum)});
    return out;
}

std::vector<Ranked> top_k_noisy(const std::vector<double>& probs, const std::vector<float>& noise,
                                double softness, int k) {
    std::vector<double> z(probs.size());
    for (size_t i = 0; i < z.size(); ++i) z[i] = std::log(probs[i]) + double(noise[i]);
    const std::vector<int> ids = sorted_ids(z);
    const size_t width = std::min(ids.size(), size_t(std::max(k, 10)));
    double sum = 0;
    for (size_t i = 0; i < width; ++i)
        sum += std::exp((z[size_t(ids[i])] - z[size_t(ids[0])]) / softness);
    std::vector<Ranked> out;
    for (size_t i = 0; i < std::min(width, size_t(k)); ++i)
        out.push_back({ids[i], (z[size_t(ids[i])] - z[size_t(ids[0])]) / softness - std::log(sum)});
    return out;
}

}  // namespace aerie::reference
