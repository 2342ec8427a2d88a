// The order of the rows is that in which heads beside a model are preferred.
#include "draft/heads/kinds.h"

#include "core/error.h"
#include "io/foreign_drafters.h"

namespace aerie {

DraftHead eagle_head();
DraftHead eagle3_head();
DraftHead medusa_head();
DraftHead hydra_head();
DraftHead draft_model();

std::span<const DraftHead> draft_heads() {
    static const std::vector<DraftHead> heads = {
        eagle_head(), eagle3_head(), medusa_head(), hydra_head(), draft_model(),
    };
    return heads;
}

const DraftHead* head_of_method(const std::string& method) {
    for (const DraftHead& head : draft_heads())
        if (head.method.name == method) return &head;
    return nullptr;
}

std::string heads_where(bool (*wanted)(const DraftHead&)) {
    std::string names;
    for (const DraftHead& head : draft_heads()) {
        if (!wanted(head)) continue;
        const std::string without_article = head.name.substr(head.name.find(' ') + 1);
        names += (names.empty() ? "" : " or ") + without_article + "s";
    }
    return names;
}

namespace {

const DraftHead* named_by(const Fields& config) {
    for (const DraftHead& head : draft_heads())
        if (head.has_config && head.has_config(config)) return &head;
    return nullptr;
}

// The kind that config.json names in a folder without weights; null: none, or there are weights.
const DraftHead* head_without_weights(const std::filesystem::path& path) {
    if (is_gguf(path)) return nullptr;
    const std::optional<Json> config = read_json_in_folder(path, "config.json");
    if (!config || !config->object()) return nullptr;
    const DraftHead* head = named_by(Fields(*config, path.string()));
    return Checkpoint::is_in(path) ? nullptr : head;
}

void rename_tensors(Checkpoint& tensors, const Spelling& spelling) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors.tensors())
        if (name.starts_with(spelling.theirs)) names.push_back(name);
    for (const std::string& name : names) {
        const std::string ours = spelling.ours + name.substr(spelling.theirs.size());
        if (!tensors.rename(name, ours))
            throw Error(tensors.folder().string() + ": both '" + name + "' and '" + ours + "'");
    }
}

}  // namespace

const DraftHead& head_kind(const ModelSource& source) {
    if (const DraftHead* named = named_by(Fields(source.config.json, source.config.file)))
        return *named;
    for (const DraftHead& head : draft_heads())
        if (head.has_tensors && head.has_tensors(source.tensors)) return head;
    return draft_heads().front();
}

const DraftHead& head_kind(const std::filesystem::path& path) {
    if (const DraftHead* head = head_without_weights(path)) return *head;
    return head_kind(open_head(path));
}

ModelSource open_head(const std::filesystem::path& path) {
    if (const DraftHead* head = head_without_weights(path))
        throw Error(path.string() + ": the configuration of " + head->name +
                    ", and no model.safetensors or pytorch_model.bin; its weights are missing");
    ModelSource source = open_model(path);
    const DraftHead& head = head_kind(source);
    if (!head.has_config && has_mtp_layers(source.tensors))
        refuse_foreign(path, "a model with MTP layers");
    for (const Spelling& spelling : head.spellings) rename_tensors(source.tensors, spelling);
    return source;
}

HeadConfig head_config(const ModelSource& source) {
    const DraftHead& kind = head_kind(source);
    HeadConfig config = kind.config(source);
    config.kind = &kind;
    return config;
}

}  // namespace aerie
