// Quantisation by search: least squares and rounding alternate from several starting points, and
// the smallest error wins.
#include "core/pack_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/quant.h"

namespace aerie {
namespace {

constexpr int kTurns = 4;
// Fractions of the range of values with which the search starts: cutting off the ends may be
// better.
constexpr float kShares[] = {1.0f, 0.95f, 0.9f, 0.8f};

int rounded_to(float value, int low, int high) {
    return int(std::lrint(std::clamp(value, float(low), float(high))));
}

uint16_t to_f16(float value) {
    constexpr float kMost = 65504;
    return f32_to_f16(std::clamp(value, -kMost, kMost));
}

// The scale and min of a group: value ~ scale * q - least.
struct Steps {
    float scale = 0, least = 0;
};

// The values of a group, and the weight of each value's error.
struct Values {
    Values(const float* from, int count) : count(count) {
        double squares = 0;
        for (int i = 0; i < count; ++i) {
            x[size_t(i)] = std::isnan(from[i]) ? 0 : from[i];
            squares += double(x[size_t(i)]) * x[size_t(i)];
        }
        const float usual = float(std::sqrt(squares / count));
        for (int i = 0; i < count; ++i) weight[size_t(i)] = usual + std::fabs(x[size_t(i)]);
    }
    int count;
    std::array<float, kGroup> x, weight;
};

double error_of(const Values& values, const Steps& steps, int low, int high) {
    const float inverse = steps.scale != 0 ? 1 / steps.scale : 0;
    double error = 0;
    for (int i = 0; i < values.count; ++i) {
        const float x = values.x[size_t(i)];
        const float q = float(rounded_to((x + steps.least) * inverse, low, high));
        const double off = double(x) - (double(steps.scale) * q - double(steps.least));
        error += values.weight[size_t(i)] * off * off;
    }
    return error;
}

// The best scale and min for the quantised values that `steps` gives, by least squares.
Steps refitted(const Values& values, const Steps& steps, int low, int high, bool has_least) {
    double w = 0, wq = 0, wqq = 0, wx = 0, wxq = 0;
    const float inverse = steps.scale != 0 ? 1 / steps.scale : 0;
    for (int i = 0; i < values.count; ++i) {
        const float x = values.x[size_t(i)];
        const double weight = values.weight[size_t(i)];
        const double q = rounded_to((x + steps.least) * inverse, low, high);
        w += weight;
        wq += weight * q;
        wqq += weight * q * q;
        wx += weight * x;
        wxq += weight * x * q;
    }
    const double determinant = w * wqq - wq * wq;
    if (has_least && determinant > 0) {
        const double scale = (w * wxq - wx * wq) / determinant;
        const double least = (wq * wxq - wqq * wx) / determinant;
        if (least > 0 && scale > 0) return {float(scale), float(least)};
    }
    return {wqq > 0 ? float(wxq / wqq) : 0, 0};
}

Steps best_steps(const Values& values, std::array<Steps, std::size(kShares)> begin, int low,
                 int high, bool has_least) {
    Steps best;
    double least_error = std::numeric_limits<double>::infinity();
    for (Steps steps : begin)
        for (int turn = 0; turn < kTurns; ++turn) {
            const double error = error_of(values, steps, low, high);
            if (error < least_error) {
                least_error = error;
                best = steps;
            }
            steps = refitted(values, steps, low, high, has_least);
        }
    return best;
}

// Scale and min, neither of them negative, for q in 0 .. most.
Steps steps_above_least(const Values& values, int most) {
    const auto end = values.x.begin() + values.count;
    const float low = std::min(*std::min_element(values.x.begin(), end), 0.0f);
    const float high = std::max(*std::max_element(values.x.begin(), end), 0.0f);
    if (high == low) return {};
    std::array<Steps, std::size(kShares)> begin;
    for (size_t i = 0; i < begin.size(); ++i)
        begin[i] = {(high - low) * kShares[i] / float(most), -low * kShares[i]};
    return best_steps(values, begin, 0, most, true);
}

// Scale for q in -half .. half - 1; the value with the largest magnitude is near -half.
Steps steps_around_zero(const Values& values, int half) {
    float extreme = 0;
    for (int i = 0; i < values.count; ++i)
        if (std::fabs(values.x[size_t(i)]) > std::fabs(extreme)) extreme = values.x[size_t(i)];
    if (extreme == 0) return {};
    std::array<Steps, std::size(kShares)> begin;
    for (size_t i = 0; i < begin.size(); ++i) begin[i] = {extreme * kShares[i] / float(-half), 0};
    return best_steps(values, begin, -half, half - 1, false);
}

// The unit in which the largest of these scales is `most`, with its sign.
float unit_of(const float* scales, int count, float most) {
    float largest = 0;
    for (int i = 0; i < count; ++i)
        if (std::fabs(scales[i]) > std::fabs(largest)) largest = scales[i];
    return f16_to_f32(to_f16(largest / most));
}

int in_units(float value, float unit, int low, int high) {
    return unit != 0 ? rounded_to(value / unit, low, high) : 0;
}

// The quantised value q for which scale * q - least is rounded_to to x.
int step_of(float x, float scale, float least, int low, int high) {
    if (scale == 0 || std::isnan(x)) return std::clamp(0, low, high);
    return rounded_to((x + least) / scale, low, high);
}

void put_six_bits(uint8_t* scales, int j, int scale, int least) {
    if (j < 4) {
        scales[j] = uint8_t(scales[j] | scale);
        scales[j + 4] = uint8_t(scales[j + 4] | least);
        return;
    }
    scales[j + 4] = uint8_t((scale & 15) | (least & 15) << 4);
    scales[j - 4] = uint8_t(scales[j - 4] | (scale >> 4) << 6);
    scales[j] = uint8_t(scales[j] | (least >> 4) << 6);
}

// Q4_K and Q5_K: the low 4 bits of q, for pairs of elements that are 32 apart, and a fifth bit if
// the block has `high`.
template <class Block>
Block pack_with_leasts(const float* values) {
    constexpr bool kFive = requires(Block b) {
        b.high;
    };
    constexpr int kMost = kFive ? 31 : 15, kParts = kSuperBlock / kGroup;
    float scales[kParts], leasts[kParts];
    for (int j = 0; j < kParts; ++j) {
        const Steps steps = steps_above_least(Values(values + j * kGroup, kGroup), kMost);
        scales[j] = steps.scale;
        leasts[j] = steps.least;
    }
    Block block = {};
    const float unit = unit_of(scales, kParts, 63), least_unit = unit_of(leasts, kParts, 63);
    block.scale = to_f16(unit);
    block.least = to_f16(least_unit);
    for (int j = 0; j < kParts; ++j) {
        const int scale = in_units(scales[j], unit, 0, 63);
        const int least = in_units(leasts[j], least_unit, 0, 63);
        put_six_bits(block.scales, j, scale, least);
        for (int i = 0; i < kGroup; ++i) {
            const int q = step_of(values[j * kGroup + i], unit * float(scale),
                                  least_unit * float(least), 0, kMost);
            uint8_t& low = block.low[j / 2 * kGroup + i];
            low = uint8_t(low | (q & 15) << (j % 2 * 4));
            if constexpr (kFive) block.high[i] = uint8_t(block.high[i] | (q >> 4) << j);
        }
    }
    return block;
}

BlockQ6_K pack_q6_k(const float* values) {
    constexpr int kParts = kSuperBlock / kScaled;
    float scales[kParts];
    for (int s = 0; s < kParts; ++s)
        scales[s] = steps_around_zero(Values(values + s * kScaled, kScaled), 32).scale;
    BlockQ6_K block = {};
    const float unit = unit_of(scales, kParts, -128);
    block.scale = to_f16(unit);
    for (int s = 0; s < kParts; ++s) {
        const int scale = in_units(scales[s], unit, -128, 127);
        block.scales[s] = int8_t(scale);
        for (int i = s * kScaled; i < (s + 1) * kScaled; ++i) {
            const int code = step_of(values[i], unit * float(scale), 0, -32, 31) + 32;
            const int half = i / 128, in_half = i % 128;
            uint8_t& low = block.low[half * 64 + in_half % 64];
            uint8_t& high = block.high[half * 32 + in_half % 32];
            low = uint8_t(low | (code & 15) << (in_half / 64 * 4));
            high = uint8_t(high | (code >> 4) << (in_half / 32 * 2));
        }
    }
    return block;
}

template <class Block>
void put_five_bits(Block& block, int i, int code) {
    uint8_t& low = block.q[i % (kGroup / 2)];
    low = uint8_t(low | (code & 15) << (i / (kGroup / 2) * 4));
    block.high[i / 8] = uint8_t(block.high[i / 8] | (code >> 4) << (i % 8));
}

BlockQ5_0 pack_q5_0(const float* values) {
    BlockQ5_0 block = {};
    block.scale = to_f16(steps_around_zero(Values(values, kGroup), 16).scale);
    const float scale = f16_to_f32(block.scale);
    for (int i = 0; i < kGroup; ++i)
        put_five_bits(block, i, step_of(values[i], scale, 0, -16, 15) + 16);
    return block;
}

BlockQ5_1 pack_q5_1(const float* values) {
    const Steps steps = steps_above_least(Values(values, kGroup), 31);
    BlockQ5_1 block = {};
    block.scale = to_f16(steps.scale);
    block.least = to_f16(-steps.least);
    const float scale = f16_to_f32(block.scale), least = f16_to_f32(block.least);
    for (int i = 0; i < kGroup; ++i)
        put_five_bits(block, i, step_of(values[i], scale, -least, 0, 31));
    return block;
}

template <class Block>
void pack_all(std::byte* to, const float* values, size_t count, Block (*pack_one)(const float*)) {
    constexpr size_t kUnit = size_t(unit_elements(Block::kType));
    for (size_t i = 0; i < count; i += kUnit, to += sizeof(Block)) {
        const Block block = pack_one(values + i);
        std::memcpy(to, &block, sizeof(block));
    }
}

template <class T>
void convert_all(std::byte* to, const float* values, size_t count, T (*convert)(float)) {
    for (size_t i = 0; i < count; ++i, to += sizeof(T)) {
        const T value = convert(values[i]);
        std::memcpy(to, &value, sizeof(value));
    }
}

}  // namespace

bool can_pack(DType type) {
    switch (type) {
        case DType::F32:
        case DType::F16:
        case DType::BF16:
        case DType::Q8_0:
        case DType::Q4_0:
        case DType::Q5_0:
        case DType::Q5_1:
        case DType::Q4_K:
        case DType::Q5_K:
        case DType::Q6_K:
            return true;
        default:
            return false;
    }
}

void pack(std::byte* to, const float* values, DType type, size_t count) {
    switch (type) {
        case DType::F32:
            std::memcpy(to, values, count * sizeof(float));
            return;
        case DType::F16:
            return convert_all(to, values, count, f32_to_f16);
        case DType::BF16:
            return convert_all(to, values, count, f32_to_bf16);
        case DType::Q8_0:
            return pack_all(to, values, count, pack_q8_0);
        case DType::Q4_0:
            return pack_all(to, values, count, pack_q4_0);
        case DType::Q5_0:
            return pack_all(to, values, count, pack_q5_0);
        case DType::Q5_1:
            return pack_all(to, values, count, pack_q5_1);
        case DType::Q4_K:
            return pack_all(to, values, count, pack_with_leasts<BlockQ4_K>);
        case DType::Q5_K:
            return pack_all(to, values, count, pack_with_leasts<BlockQ5_K>);
        case DType::Q6_K:
            return pack_all(to, values, count, pack_q6_k);
        default:
            throw std::logic_error(std::string("nothing is packed to ") + name(type));
    }
}

}  // namespace aerie
