// The one place that knows how exporters spell tensor names.
#include "model/heads.h"

#include <vector>

#include "core/error.h"
#include "io/foreign_drafters.h"

namespace aerie {

namespace {

struct Spelling {
    const char *theirs, *ours;
};
// Starts of names. SpecForge's exports for Hugging Face put "model." in front of all of them;
// speculators and vLLM call the layer by its number.
constexpr Spelling kEagle3Names[] = {{"model.", ""}, {"layers.0.", "midlayer."}};

void rename_tensors(Checkpoint& tensors) {
    for (const Spelling& spelling : kEagle3Names) {
        const std::string theirs = spelling.theirs;
        std::vector<std::string> names;
        for (const auto& [name, tensor] : tensors.tensors())
            if (name.starts_with(theirs)) names.push_back(name);
        for (const std::string& name : names) {
            const std::string ours = spelling.ours + name.substr(theirs.size());
            if (!tensors.rename(name, ours))
                throw Error(tensors.folder().string() + ": both '" + name + "' and '" + ours + "'");
        }
    }
}

// Looks at the configuration alone, before tensors are opened.
bool is_eagle3_folder(const std::filesystem::path& path) {
    if (is_gguf(path)) return false;
    const std::optional<Json> config = read_json_in_folder(path, "config.json");
    return config && config->object() && is_eagle3(Fields(*config, path.string()));
}

}  // namespace

HeadKind head_kind(const ModelSource& source) {
    if (is_eagle3(Fields(source.config.json, source.config.file))) return HeadKind::eagle3;
    if (is_medusa(source.tensors)) return HeadKind::medusa;
    if (is_hydra(source.tensors)) return HeadKind::hydra;
    for (const char* name : {"model.embed_tokens.weight", "model.norm.weight"})
        if (source.tensors.find(name)) return HeadKind::language_model;
    return HeadKind::eagle;
}

ModelSource open_head(const std::filesystem::path& path) {
    if (is_eagle3_folder(path) && !Checkpoint::is_in(path))
        throw Error(path.string() +
                    ": the configuration of an EAGLE-3 head, and no model.safetensors or "
                    "pytorch_model.bin; its weights are missing");
    ModelSource source = open_model(path);
    if (head_kind(source) == HeadKind::eagle3)
        rename_tensors(source.tensors);
    else if (has_mtp_layers(source.tensors))
        refuse_foreign(path, "a model with MTP layers");
    return source;
}

HeadKind head_kind(const std::filesystem::path& path) {
    if (is_eagle3_folder(path) && !Checkpoint::is_in(path)) return HeadKind::eagle3;
    return head_kind(open_head(path));
}

ModelConfig head_config(const ModelSource& source) {
    const HeadKind kind = head_kind(source);
    if (kind == HeadKind::language_model) return target_config(source);
    if (kind == HeadKind::medusa || kind == HeadKind::hydra)
        return parallel_head_config(source.tensors);
    ModelConfig config = parse_head_config(source.config);
    if (!config.eagle3) return config;
    Eagle3Shape& shape = *config.eagle3;
    const auto has = [&](const char* tensor) { return source.tensors.find(tensor) != nullptr; };
    shape.norms_taps |= has("fc_norm.0.weight");
    shape.norms_features |= has("input_norm.weight");
    config.qk_norm = has("midlayer.self_attn.q_norm.weight");
    if (shape.norms_taps && shape.norms_features)
        throw Error(source.path.string() + ": both 'fc_norm' and 'input_norm'");
    return config;
}

}  // namespace aerie
