// The bundled target beside language models that draft for it.
#pragma once

#include "draft/heads/kinds.h"
#include "engine/bundled.h"
#include "model/make/random_weights.h"
#include "model/make/shapes.h"

namespace aerie::test {

inline LoadOptions options_of(DType type, DType draft_type) {
    LoadOptions options = bundled_options(type, draft_type);
    options.head = options.model;
    options.draft.method = "model";
    return options;
}

// A shape of two layers and `vocab` tokens; the bundled model has 4,096.
inline ModelConfig small_shape(int vocab, const char* like = "aerie-tiny") {
    ShapeChanges small;
    small.hidden = small.intermediate = 64;
    small.layers = small.heads = 2;
    small.kv_heads = 1;
    small.head_dim = 32;
    small.vocab = vocab;
    ModelConfig config = model_shape(like, small);
    if (config.experts.count > 0) config.experts.intermediate = 32;
    return config;
}

// The bundled target beside a draft model of random weights; without a shape it drafts for itself.
inline ModelFiles files_with(const LoadOptions& options, const ModelConfig* drafts) {
    ModelFiles files = ModelFiles::open(options);
    if (!drafts) return files;
    files.head_config = HeadConfig{*drafts, head_of_method("model")};
    files.head->path = "random";
    files.head->tensors = random_checkpoint("random", target_tensors(*drafts), DType::F16, 1);
    return files;
}

inline Bundled model_with(const LoadOptions& options, const ModelConfig* drafts) {
    return {files_with(options, drafts), options, open_device(options.device)};
}

inline DraftOptions tree_of_shape(std::optional<TreeShape> shape) {
    DraftOptions draft = draft_options("model");
    draft.tree = shape;
    return draft;
}

inline const DraftOptions kTrees[] = {tree_of_shape(TreeShape{6, 5, 1}),
                                      tree_of_shape(TreeShape{16, 4, 3}), tree_of_shape({})};

// The prompt begins with ids at both ends of the vocabulary, then has words.
inline std::vector<int> prompt_of(Bundled& model, size_t i) {
    std::vector<int> ids = {1, 4095, 4001};
    const std::vector<int> words = model.encode(sixty_prompts()[i]);
    ids.insert(ids.end(), words.begin() + 1, words.end());
    return ids;
}

}  // namespace aerie::test
