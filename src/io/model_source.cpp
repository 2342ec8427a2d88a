// Which file format a path is; today there are folders.
#include "io/model_source.h"

#include "core/error.h"
#include "io/input_file.h"
#include "io/model_folder.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxTokenizerBytes = 16 << 20;
constexpr const char *kConfig = "config.json", *kGeneration = "generation_config.json",
                     *kTokenizer = "tokenizer.model", *kTokenizerConfig = "tokenizer_config.json";

std::optional<NamedJson> read_named(const fs::path& folder, const char* name) {
    std::optional<Json> json = read_json_in_folder(folder, name);
    if (!json) return std::nullopt;
    return NamedJson{*std::move(json), (folder / name).string()};
}

}  // namespace

TokenizerSource read_tokenizer(const fs::path& folder) {
    return {(folder / kTokenizer).string(),
            read_text(file_in_folder(folder, kTokenizer), kMaxTokenizerBytes),
            read_named(folder, kTokenizerConfig)};
}

ModelSource open_model(const fs::path& folder) {
    std::optional<NamedJson> config = read_named(folder, kConfig);
    if (!config)
        throw Error((folder / kConfig).string() +
                    ": missing; a Hugging Face model folder is expected");
    ModelSource source;
    source.path = folder;
    source.config = *std::move(config);
    source.generation = read_named(folder, kGeneration);
    if (is_in_folder(folder, kTokenizer)) source.tokenizer = read_tokenizer(folder);
    source.tensors = Checkpoint::open(folder);
    return source;
}

}  // namespace aerie
