// Counter-based noise through a table of normal quantiles: a few cycles per value.
#include "model/make/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/hash.h"
#include "core/parallel_for.h"

namespace aerie {

namespace {

constexpr float kDeviation = 0.02f;
constexpr int kQuantileBits = 12;  // the table stays in the first-level cache
constexpr int kPerWord = 4;        // values made of one random word

// SplitMix64's finaliser (Steele, Lea, Flood 2014): neighbours become independent words.
uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// The point below which a standard normal value lies with this probability.
double normal_quantile(double probability) {
    double low = -9, high = 9;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (std::erfc(-middle / std::sqrt(2.0)) / 2 < probability ? low : high) = middle;
    }
    return low;
}

}  // namespace

RandomWeights::RandomWeights(DType type, uint64_t seed) : type_(type), seed_(seed) {
    for (int i = 0; i < 1 << kQuantileBits; ++i) {
        const double probability = (i + 0.5) / (1 << kQuantileBits);
        const float value = kDeviation * float(normal_quantile(probability));
        floats_.push_back(value);
        halves_.push_back(type == DType::BF16 ? f32_to_bf16(value) : f32_to_f16(value));
    }
}

void RandomWeights::fill(const std::string& name, int64_t first, std::span<std::byte> out) const {
    if (name.ends_with("norm.weight")) {
        const float one = 1;
        const uint16_t half = type_ == DType::BF16 ? f32_to_bf16(one) : f32_to_f16(one);
        const size_t size = size_bytes(type_);
        const void* value = type_ == DType::F32 ? static_cast<const void*>(&one) : &half;
        for (size_t i = 0; i < out.size(); i += size) std::memcpy(&out[i], value, size);
    } else if (type_ == DType::F32) {
        fill_as(floats_, mix(seed_ + fnv1a(name)), first, out);
    } else {
        fill_as(halves_, mix(seed_ + fnv1a(name)), first, out);
    }
}

template <class T>
void RandomWeights::fill_as(const std::vector<T>& quantiles, uint64_t key, int64_t first,
                            std::span<std::byte> out) const {
    constexpr int64_t kGrain = 1 << 18;  // words
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
    const T* table = quantiles.data();
    const int64_t last = first + int64_t(out.size() / sizeof(T)), first_word = first / kPerWord;
    parallel_for(
        (last + kPerWord - 1) / kPerWord - first_word, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = first_word + begin; i < first_word + end; ++i) {
                const uint64_t word = mix(key + kGolden * uint64_t(i + 1));
                T values[kPerWord];
                for (int lane = 0; lane < kPerWord; ++lane)
                    values[lane] = table[(word >> (16 * lane)) & ((1 << kQuantileBits) - 1)];
                const int64_t from = std::max(i * kPerWord, first),
                              to = std::min((i + 1) * kPerWord, last);
                std::memcpy(&out[size_t(from - first) * sizeof(T)], values + from % kPerWord,
                            sizeof(T) * size_t(to - from));
            }
        });
}

NamedTensor described(const TensorShape& tensor, DType type) {
    return {tensor.name, type, tensor.shape, {0, checked_bytes(tensor.shape, type, tensor.name)}};
}

Checkpoint random_checkpoint(const std::string& name, const std::vector<TensorShape>& tensors,
                             DType type, uint64_t seed) {
    std::vector<NamedTensor> all;
    for (const TensorShape& tensor : tensors) all.push_back(described(tensor, type));
    const auto fill = [weights = RandomWeights(type, seed)](const NamedTensor& tensor, DType,
                                                            size_t first,
                                                            std::span<std::byte> out) {
        weights.fill(tensor.name, int64_t(first), out);
    };
    return Checkpoint::generated(name, std::move(all), fill);
}

}  // namespace aerie
