// Turns raw logits into processed ones. Every filter keeps a prefix of one order (logit descending,
// id ascending), so all filters together are one cut of it.
#include "cpu/logit_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace aerie::cpu {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const RowChoice& rule_of(const Rules& rules, int index) {
    static const RowChoice argmax;
    if (!rules.block) return argmax;
    return *row<RowChoice>(rules.block, rules.block.rows == 1 ? 0 : index);
}

}  // namespace

PathTokens path_tokens(const Rows& rows, int index) {
    PathTokens tokens;
    if (!rows.block) return tokens;
    const Row& last = *row<Row>(rows.block, index);
    for (int i = 1; i < last.depth(); ++i)
        tokens.push_back(row<Row>(rows.block, index - (last.slot - last.path[i]))->token);
    if (last.depth() > 0) tokens.push_back(last.token);
    return tokens;
}

namespace {

void penalise(float* out, const float* logits, const Choice& choice, int index,
              const PathTokens& path) {
    const RowChoice& rule = rule_of(choice.rules, index);
    const int32_t* seen = row<int32_t>(choice.rules.seen, rule.sequence);
    const int32_t* map = choice.id_map ? row<int32_t>(choice.id_map, 0) : nullptr;
    // Blocks without seen tokens are skipped: most tokens were never seen.
    constexpr int kBlock = 16;
    for (int first = 0; first < choice.logits.cols; first += kBlock) {
        const int end = std::min(first + kBlock, choice.logits.cols);
        int32_t any = 0;
        for (int i = first; i < end; ++i) any |= seen[map ? map[i] : i];
        if (any == 0) continue;
        for (int i = first; i < end; ++i)
            if (const int32_t word = seen[map ? map[i] : i]; word != 0)
                out[i] = penalised(logits[i], rule, word);
    }
    for (int32_t token : path) {
        const auto times = int32_t(std::count(path.begin(), path.end(), token));
        out[token] = penalised(logits[token], rule, seen[token] + times * kPutOut);
    }
}

// A forbidden token is NaN: it ranks below -inf and is never chosen.
void apply_mask(float* out, const Choice& choice, int index) {
    const uint32_t* mask = row<uint32_t>(choice.mask, index);
    const int32_t* map = choice.id_map ? row<int32_t>(choice.id_map, 0) : nullptr;
    for (int i = 0; i < choice.logits.cols; ++i) {
        const uint32_t token = uint32_t(map ? map[i] : i);
        if (!(mask[token / 32] >> (token % 32) & 1))
            out[i] = std::numeric_limits<float>::quiet_NaN();
    }
}

// Logits after penalties and mask; they are in `space` if anything may change.
const float* edited(const Choice& choice, int index, const PathTokens& path, float* space) {
    const float* logits = row_f32(choice.logits, index);
    if (!choice.rules.seen && !choice.mask) return logits;
    std::copy_n(logits, choice.logits.cols, space);
    if (choice.rules.seen) penalise(space, logits, choice, index, path);
    if (choice.mask) apply_mask(space, choice, index);
    return space;
}

// The key of a token. Keys descend in the order of the filters: logit descending, then id
// ascending.
uint64_t order_key(float logit, int id) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, logit + 0.0f);  // -0 becomes 0
    const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return uint64_t(ordered) << 32 | (0xffffffffu - uint32_t(id));
}
int id_of(uint64_t key) {
    return int(0xffffffffu - uint32_t(key));
}

// Sum of exp(logit / temperature), relative to the best token, over some keys.
double mass_of(const float* masses, const uint64_t* first, const uint64_t* last) {
    double sum = 0;
    for (; first != last; ++first) sum += double(masses[id_of(*first)]);
    return sum;
}

// The length of the shortest prefix of the order with at least `goal` mass; at least one token. It
// sorts no more than it must; in the end that prefix comes first in `keys`.
size_t prefix_with_mass(const float* masses, std::span<uint64_t> keys, double goal) {
    size_t first = 0, last = keys.size();  // the prefix ends in (first, last]
    double before = 0;                     // mass of [0, first)
    while (last - first > 1) {
        const size_t middle = first + (last - first) / 2;
        uint64_t* data = keys.data();
        std::nth_element(data + first, data + middle, data + last, std::greater<uint64_t>());
        const double upper = before + mass_of(masses, data + first, data + middle);
        if (upper >= goal) {
            last = middle;
        } else {
            first = middle;
            before = upper;
        }
    }
    return last;
}

// Puts the best tokens into scratch.order until there are `count` and their mass is `goal`; the
// order among them is left open. Most rows are done after the first band below the best logit.
std::span<uint64_t> gather_best(const Kernels& kernels, const LogitRow& row, const Scratch& scratch,
                                size_t count, double goal) {
    size_t size = 0;
    double mass = 0;
    float high = kInfinity;
    for (double depth : {4.0, 8.0, 16.0, double(kInfinity)}) {
        const float low = float(row.top.value - depth * row.temperature);
        const int found = kernels.ids_between(scratch.ids, row.logits, low, high, row.vocab);
        for (int i = 0; i < found; ++i)
            scratch.order[size + size_t(i)] = order_key(row.logits[scratch.ids[i]], scratch.ids[i]);
        if (goal > 0)
            mass += mass_of(scratch.masses, scratch.order + size, scratch.order + size + found);
        size += size_t(found);
        if (size >= count && mass >= goal) break;
        high = low;
    }
    return {scratch.order, size};
}

// The smallest key that the filters keep; 0 where they keep all.
uint64_t find_cut(const Kernels& kernels, const LogitRow& row, const Scratch& scratch) {
    const RowChoice& rule = row.rule;
    uint64_t cut = 0;
    const bool limited = rule.top_k > 0 && rule.top_k < row.vocab;
    const bool nucleus = rule.top_p < 1;
    if (limited || nucleus) {
        const float top = row.top.value, scale = rule.scale;
        double goal = 0;
        if (nucleus) kernels.exp_all(scratch.masses, row.logits, top, scale, row.vocab);
        if (!limited) goal = rule.top_p * kernels.exp_sum(row.logits, top, scale, row.vocab);
        std::span<uint64_t> keys =
            gather_best(kernels, row, scratch, limited ? size_t(rule.top_k) : 1, goal);
        if (limited && size_t(rule.top_k) < keys.size()) {
            std::nth_element(keys.begin(), keys.begin() + rule.top_k, keys.end(),
                             std::greater<uint64_t>());
            keys = keys.first(size_t(rule.top_k));
        }
        if (limited && nucleus)
            goal = rule.top_p * mass_of(scratch.masses, keys.data(), keys.data() + keys.size());
        if (nucleus) keys = keys.first(prefix_with_mass(scratch.masses, keys, goal));
        cut = *std::min_element(keys.begin(), keys.end());
    }
    if (rule.min_p_cutoff > -kInfinity) {
        const double least = row.top.value + rule.min_p_cutoff;
        float logit = float(least);
        if (double(logit) < least) logit = std::nextafter(logit, kInfinity);
        cut = std::max(cut, order_key(logit, std::numeric_limits<int>::max()));
    }
    return cut;
}

// Removes the tokens behind the cut.
void apply_cut(const Kernels& kernels, uint64_t cut, float* logits, int vocab) {
    const uint32_t ordered = uint32_t(cut >> 32);
    const uint32_t bits = ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered;
    const float value = __builtin_bit_cast(float, bits);
    const int through = std::min(id_of(cut), vocab - 1) + 1;  // ids below it are kept at the cut's
                                                              // own value
    kernels.remove_below(logits, value, through);
    kernels.remove_below(logits + through, std::nextafter(value, kInfinity), vocab - through);
}

}  // namespace

LogitRow edited_row(const Kernels& kernels, const Choice& choice, int index, const PathTokens& path,
                    const Scratch& scratch) {
    LogitRow row{edited(choice, index, path, scratch.logits),
                 choice.logits.cols,
                 rule_of(choice.rules, index),
                 {},
                 0};
    row.top = kernels.argmax(row.logits, row.vocab);
    // If the best logit is infinite there is no distribution: the best token is taken.
    if (std::isfinite(row.top.value)) row.temperature = row.rule.temperature;
    return row;
}

LogitRow processed_row(const Kernels& kernels, const Choice& choice, int index,
                       const PathTokens& path, const Scratch& scratch) {
    LogitRow row = edited_row(kernels, choice, index, path, scratch);
    if (row.temperature == 0) return row;
    const uint64_t cut = find_cut(kernels, row, scratch);
    if (cut == 0) return row;
    if (row.logits != scratch.logits) std::copy_n(row.logits, row.vocab, scratch.logits);
    apply_cut(kernels, cut, scratch.logits, row.vocab);
    row.logits = scratch.logits;
    return row;
}

}  // namespace aerie::cpu
