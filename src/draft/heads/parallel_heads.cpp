// Tensor names as the programs of Medusa and Hydra save them.
#include "draft/heads/parallel_heads.h"

#include <set>

#include "core/error.h"
#include "core/rows.h"

namespace aerie {

namespace {

constexpr int kMaxBlocks = 16;  // indices that a head's blocks may have
constexpr const char* kPrefix = "prefix_embeding_layer.";

// Heads in files of their own, and as a part of a whole model.
constexpr const char* kMedusaNames[] = {"", "medusa_head."};

std::string medusa_name(const Checkpoint& tensors) {
    for (const std::string begin : kMedusaNames)
        if (tensors.find(begin + "0.0.linear.weight")) return begin;
    return kMedusaNames[0];
}

// Starts of the names of a head's blocks: the indices at which there is a linear.
std::vector<std::string> blocks_at(const Checkpoint& tensors, const std::string& head) {
    std::vector<std::string> blocks;
    for (int place = 0; place < kMaxBlocks; ++place) {
        const std::string block = head + std::to_string(place) + ".";
        if (tensors.find(block + "linear.weight")) blocks.push_back(block);
    }
    return blocks;
}

ParallelHeads medusa_heads(const Checkpoint& tensors) {
    ParallelHeads all;
    const std::string begin = medusa_name(tensors);
    for (int i = 0; i < kMaxDepth; ++i) {
        const std::string head = begin + std::to_string(i) + ".";
        ParallelHeads::Head one{blocks_at(tensors, head), ""};
        if (one.blocks.empty()) break;
        const std::string lm_head = head + std::to_string(one.blocks.size()) + ".";
        if (tensors.find(lm_head + "weight")) one.lm_head = lm_head;
        all.heads.push_back(std::move(one));
    }
    return all;
}

ParallelHeads hydra_heads(const Checkpoint& tensors) {
    ParallelHeads all;
    all.sees_path = true;
    for (const auto& [name, tensor] : tensors.tensors())
        all.has_prefix |= name.starts_with(kPrefix);
    for (int i = 0; i < kMaxDepth; ++i) {
        const std::string number = std::to_string(i) + ".";
        ParallelHeads::Head one{blocks_at(tensors, "hydra_mlp." + number), ""};
        if (one.blocks.empty()) break;
        for (const char* place : {"", "0.", "1."})
            if (const std::string lm_head = "hydra_lm_head." + number + place;
                tensors.find(lm_head + "weight"))
                one.lm_head = lm_head;
        all.heads.push_back(std::move(one));
    }
    return all;
}

int rows_of(const Checkpoint& tensors, const std::string& name) {
    const NamedTensor* tensor = tensors.find(name);
    if (!tensor || tensor->shape.size() != 2 || tensor->shape[0] < 1 ||
        tensor->shape[0] > (1 << 24))
        throw Error(tensors.folder().string() + ": '" + name + "' is no matrix of a head");
    return int(tensor->shape[0]);
}

HeadConfig config_of(const char* architecture, ParallelHeads all, const Checkpoint& tensors) {
    HeadConfig config;
    const auto& heads = all.heads;
    config.architecture = architecture;
    config.layers = 1;
    config.hidden = rows_of(tensors, heads[0].blocks[0] + "linear.weight");
    if (!heads[0].lm_head.empty()) config.vocab = rows_of(tensors, heads[0].lm_head + "weight");
    for (const ParallelHeads::Head& head : heads)
        if (head.lm_head.empty() != heads[0].lm_head.empty())
            throw Error(tensors.folder().string() +
                        ": some of its heads have an LM head of their own, others have none");
    config.own = std::move(all);
    return config;
}

}  // namespace

bool is_medusa(const Checkpoint& tensors) {
    return tensors.find(medusa_name(tensors) + "0.0.linear.weight") != nullptr;
}

bool is_hydra(const Checkpoint& tensors) {
    return !blocks_at(tensors, "hydra_mlp.0.").empty();
}

HeadConfig medusa_config(const ModelSource& source) {
    return config_of("medusa", medusa_heads(source.tensors), source.tensors);
}

HeadConfig hydra_config(const ModelSource& source) {
    return config_of("hydra", hydra_heads(source.tensors), source.tensors);
}

void complete_parallel_heads(const ModelConfig& target, HeadConfig& heads) {
    ModelConfig whole = target;
    whole.architecture = heads.architecture;
    whole.layers = 1;
    whole.hidden = heads.hidden;
    if (heads.vocab > 0) whole.vocab = heads.vocab;
    whole.windows.clear();
    whole.experts = {};
    whole.qk_norm = whole.qkv_bias = whole.attention_output_bias = whole.mlp_bias = false;
    static_cast<ModelConfig&>(heads) = std::move(whole);
}

void refuse_other_tensors(const ParallelHeads& heads, const Checkpoint& tensors) {
    std::set<std::string> known = {"input_embed_fn.weight"};  // the target's
    for (const ParallelHeads::Head& head : heads.heads) {
        for (const char* end : {"weight", "bias"}) {
            known.insert(head.lm_head + end);
            for (const std::string& block : head.blocks) {
                known.insert(block + "linear." + end);
                if (heads.sees_path) known.insert(block + "res_connection." + end);
            }
        }
    }
    for (const auto& [name, tensor] : tensors.tensors())
        if (!known.count(name) && !(heads.has_prefix && name.starts_with(kPrefix)))
            throw Error(tensors.describe(tensor) + " is no part of a " +
                        (heads.sees_path ? "Hydra" : "Medusa") + " head");
}

}  // namespace aerie
