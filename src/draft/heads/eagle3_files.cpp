// Reads and checks an EAGLE-3 head's files; every fault is found before a weight is loaded.
#include "draft/heads/eagle3_files.h"

#include <cstring>
#include <set>

#include "core/error.h"
#include "model/make/random_weights.h"

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
    const std::vector<int>& taps = eagle3_shape(*plan.head).taps;
    return taps.empty() ? usual_taps(plan.target.layers) : taps;
}

int eagle3_features(const HeadConfig& head) {
    return eagle3_shape(head).tap_count() * eagle3_shape(head).target_hidden;
}

bool has_lm_head(const Checkpoint& tensors) {
    return tensors.find("lm_head.weight") != nullptr;
}

void check_eagle3(const DraftPlan& plan) {
    const Eagle3Shape& shape = eagle3_shape(*plan.head);
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
void refuse_other_tensors(const HeadConfig& head, const Checkpoint& tensors) {
    std::set<std::string> known = {"d2t", "t2d", "verifier_lm_head.weight", "verifier_norm.weight"};
    for (const TensorShape& tensor : eagle3_tensors(head)) known.insert(tensor.name);
    for (const auto& [name, tensor] : tensors.tensors())
        if (!known.count(name))
            throw Error(tensors.describe(tensor) + " is no part of an EAGLE-3 head");
}

std::vector<int32_t> read_target_ids(const HeadConfig& head, const Checkpoint& tensors) {
    const int vocab = eagle3_shape(head).vocab;
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

namespace {

// The target's id for a draft id.
int64_t spread(const HeadConfig& head, int64_t id) {
    return id * head.vocab / eagle3_shape(head).vocab;
}

int64_t offset_of(const HeadConfig& head, int64_t id) {
    return spread(head, id) - id;
}

bool is_member(const HeadConfig& head, int64_t target_id) {
    const int64_t vocab = eagle3_shape(head).vocab;
    const int64_t id = (target_id * vocab + head.vocab - 1) / head.vocab;  // first candidate
    return id < vocab && spread(head, id) == target_id;
}

}  // namespace

std::vector<NamedTensor> random_eagle3_tensors(const HeadConfig& head, DType type) {
    std::vector<NamedTensor> tensors;
    for (const TensorShape& tensor : eagle3_tensors(head))
        if (tensor.name != "embed_tokens.weight") tensors.push_back(described(tensor, type));
    const int vocab = eagle3_shape(head).vocab;
    if (vocab == head.vocab) return tensors;
    tensors.push_back(described({"d2t", {vocab}}, DType::I64));
    tensors.push_back(described({"t2d", {head.vocab}}, DType::Bool));
    return tensors;
}

bool fill_ids(const HeadConfig& head, const NamedTensor& tensor, int64_t first,
              std::span<std::byte> out) {
    if (tensor.name != "d2t" && tensor.name != "t2d") return false;
    const size_t size = size_bytes(tensor.dtype);
    for (size_t i = 0; i < out.size() / size; ++i) {
        const int64_t id = first + int64_t(i);
        if (tensor.name == "d2t") {
            const int64_t offset = offset_of(head, id);
            std::memcpy(&out[i * size], &offset, size);
        } else {
            out[i] = std::byte(is_member(head, id));
        }
    }
    return true;
}

}  // namespace aerie
