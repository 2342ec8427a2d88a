// Reads and checks an EAGLE-3 head's files; every fault is found before a weight is loaded.
#include "draft/heads/eagle3_files.h"

#include <cstring>
#include <set>

#include "core/error.h"
#include "model/tensors.h"

namespace aerie {

namespace {

// Reads d2t: for each draft token the target's id minus the draft id.
std::vector<int64_t> read_offsets(const Checkpoint& tensors, const NamedTensor& d2t, int vocab) {
    const std::string what = tensors.describe(d2t);
    const bool is_short = d2t.dtype == DType::I32;
    if ((!is_short && d2t.dtype != DType::I64) || d2t.shape != std::vector<int64_t>{vocab})
        throw Error(what + " is " + name(d2t.dtype) + " " + d2t.shape_text() + ", expected i64 [" +
                    std::to_string(vocab) + "]");
    const auto bytes = tensors.read(d2t);
    std::vector<int64_t> offsets(static_cast<size_t>(vocab));
    for (size_t i = 0; i < offsets.size(); ++i) {
        int32_t value = 0;
        if (is_short) {
            std::memcpy(&value, bytes.get() + i * sizeof(value), sizeof(value));
            offsets[i] = value;
        } else {
            std::memcpy(&offsets[i], bytes.get() + i * sizeof(int64_t), sizeof(int64_t));
        }
    }
    return offsets;
}

// Checks t2d, which flags the target ids in the draft vocabulary, against `taken`.
void check_members(const Checkpoint& tensors, const std::vector<bool>& taken) {
    const NamedTensor* members = tensors.find("t2d");
    if (!members) return;
    const std::string what = tensors.describe(*members);
    if (members->dtype != DType::Bool || members->shape != std::vector{int64_t(taken.size())})
        throw Error(what + " is " + name(members->dtype) + " " + members->shape_text() +
                    ", expected bool [" + std::to_string(taken.size()) + "]");
    const auto flags = tensors.read(*members);
    for (size_t id = 0; id < taken.size(); ++id)
        if ((flags[id] != std::byte(0)) != taken[id])
            throw Error(what + " and 'd2t' disagree about token " + std::to_string(id));
}

}  // namespace

Taps eagle3_taps(const DraftPlan& plan) {
    const std::vector<int>& taps = plan.head->eagle3->taps;
    return taps.empty() ? usual_taps(plan.target.layers) : taps;
}

int eagle3_features(const ModelConfig& head) {
    return head.eagle3->tap_count() * head.eagle3->target_hidden;
}

bool has_lm_head(const Checkpoint& tensors) {
    return tensors.find("lm_head.weight") != nullptr;
}

void check_eagle3(const DraftPlan& plan) {
    const Eagle3Shape& shape = *plan.head->eagle3;
    const std::string& folder = plan.source->path.string();
    const auto check = [&](const char* what, int have, int want) {
        if (have != want)
            throw Error(folder + ": this head is for a target with " + what + " " +
                        std::to_string(have) + ", this one has " + std::to_string(want));
    };
    check("hidden size", shape.target_hidden, plan.target.hidden);
    check("vocabulary size", plan.head->vocab, plan.target.vocab);
    for (const int tap : eagle3_taps(plan))
        if (tap > plan.target.layers)
            throw Error(folder + ": this head reads layer " + std::to_string(tap) +
                        ", the target has " + std::to_string(plan.target.layers));
    const Checkpoint& tensors = plan.source->tensors;
    if (!tensors.find("embed_tokens.weight") && plan.head->hidden != plan.target.hidden)
        throw Error(folder + ": no 'embed_tokens.weight', and the target's has " +
                    std::to_string(plan.target.hidden) + " columns, not " +
                    std::to_string(plan.head->hidden));
    const bool can_share =
        shape.vocab == plan.target.vocab && plan.head->hidden == plan.target.hidden;
    if (!has_lm_head(tensors) && !can_share)
        throw Error(folder +
                    ": an EAGLE-3 head without 'lm_head.weight', and the target's does "
                    "not fit");
}

// Training with speculators may leave the target's LM head and norm, the last two names, beside the
// head.
void refuse_other_tensors(const ModelConfig& head, const Checkpoint& tensors) {
    std::set<std::string> known = {"d2t", "t2d", "verifier_lm_head.weight", "verifier_norm.weight"};
    for (const TensorShape& tensor : head_tensors(head)) known.insert(tensor.name);
    for (const auto& [name, tensor] : tensors.tensors())
        if (!known.count(name))
            throw Error(tensors.describe(tensor) + " is no part of an EAGLE-3 head");
}

std::vector<int32_t> read_target_ids(const ModelConfig& head, const Checkpoint& tensors) {
    const int vocab = head.eagle3->vocab;
    const NamedTensor* d2t = tensors.find("d2t");
    if (!d2t) {
        if (vocab == head.vocab) return {};
        throw Error(tensors.folder().string() + ": no tensor 'd2t', and a draft vocabulary of " +
                    std::to_string(vocab) + " of " + std::to_string(head.vocab));
    }
    const std::vector<int64_t> offsets = read_offsets(tensors, *d2t, vocab);
    std::vector<int32_t> ids;
    std::vector<bool> taken(size_t(head.vocab));
    bool is_same = vocab == head.vocab;
    for (int i = 0; i < vocab; ++i) {
        const int64_t offset = offsets[size_t(i)];
        const bool is_token = offset >= -i && offset < int64_t(head.vocab) - i;
        if (!is_token || taken[size_t(i + offset)])
            throw Error(tensors.describe(*d2t) + ": entry " + std::to_string(i) + " is " +
                        std::to_string(offset) +
                        (is_token ? ", a token that another has" : ", which leads to no token"));
        taken[size_t(i + offset)] = true;
        ids.push_back(int32_t(i + offset));
        is_same &= offset == 0;
    }
    check_members(tensors, taken);
    return is_same ? std::vector<int32_t>() : ids;
}

}  // namespace aerie
