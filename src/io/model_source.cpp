// Chooses the reader for a path: a Hugging Face model folder, or one GGUF file.
#include "io/model_source.h"

#include "core/ascii.h"
#include "core/error.h"
#include "core/utf8.h"
#include "io/foreign_drafters.h"
#include "io/foreign_weights.h"
#include "io/gguf/config.h"
#include "io/gguf/weights.h"
#include "io/input_file.h"
#include "io/model_folder.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

using Format = TokenizerSource::Format;

constexpr const char *kConfig = "config.json", *kGeneration = "generation_config.json",
                     *kTokenizerConfig = "tokenizer_config.json",
                     *kTemplate = "chat_template.jinja";
// The first one that exists is used: transformers converts the second into the first.
constexpr std::pair<const char*, Format> kTokenizers[] = {
    {"tokenizer.json", Format::tokenizer_json}, {"tokenizer.model", Format::sentencepiece}};

std::optional<NamedJson> read_named(const fs::path& folder, const char* name) {
    std::optional<Json> json = read_json_in_folder(folder, name);
    if (!json) return std::nullopt;
    return NamedJson{*std::move(json), (folder / name).string()};
}

std::optional<TokenizerSource> tokenizer_in(const fs::path& folder) {
    constexpr size_t kMaxTemplateBytes = 1 << 20;
    for (const auto& [name, format] : kTokenizers) {
        if (!is_in_folder(folder, name)) continue;
        TokenizerSource source;
        source.format = format;
        source.file = (folder / name).string();
        source.path = file_in_folder(folder, name);
        source.config = read_named(folder, kTokenizerConfig);
        if (is_in_folder(folder, kTemplate))
            source.chat_template = {read_text(file_in_folder(folder, kTemplate), kMaxTemplateBytes),
                                    (folder / kTemplate).string()};
        return source;
    }
    return std::nullopt;
}

TokenizerSource tokenizer_in(const fs::path& path, std::shared_ptr<const Gguf> gguf) {
    TokenizerSource source;
    source.format = Format::gguf;
    source.file = path.string();
    for (const char* list : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"})
        if (const GgufValue* value = gguf->metadata().find(list); value && value->is_strings())
            for (size_t i = 0; i < value->size(); ++i) source.text_bytes += value->string(i).size();
    source.gguf = std::move(gguf);
    return source;
}

// As many bytes of the file's beginning as there are. Throws Error if it cannot be read.
std::string first_bytes(const fs::path& path, size_t count) {
    const InputFile file(path);
    std::string bytes(std::min(count, file.size_bytes()), '\0');
    file.read(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

// The form of a file that is often taken for a model's; empty: another one.
std::string known_form(const fs::path& path) {
    const std::string begin = first_bytes(path, 64);
    if (begin.empty()) return "an empty file";
    const size_t first = std::min(begin.find_first_not_of(" \t\r\n"), begin.size());
    const std::string text = lower_ascii(begin.substr(first));
    if (text.starts_with("<!doctype html") || text.starts_with("<html"))
        return "a web page; the download address of the file itself is another one";
    if (begin.starts_with("PK\x03\x04"))
        return "an archive (zip, or weights of PyTorch); a model of several files is given by its "
               "folder";
    if (begin.size() > 9 && begin[8] == '{' && begin[9] == '"')
        return "weights as safetensors; such a model is given by its folder, with config.json and "
               "the tokenizer";
    return "";
}

std::shared_ptr<const Gguf> opened_gguf(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored) && first_bytes(path, 4) != "GGUF")
        if (const std::string form = known_form(path); !form.empty())
            throw Error(path.string() + ": not in GGUF format, but " + form, Cause::unsupported);
    return std::make_shared<const Gguf>(Gguf::open(path));
}

ModelSource open_gguf(const fs::path& path) {
    const std::shared_ptr<const Gguf> gguf = opened_gguf(path);
    refuse_foreign(path, foreign_drafter(*gguf));
    ModelSource source;
    source.path = path;
    source.config = {gguf_config(*gguf), path.string(), gguf_key_names(*gguf)};
    source.generation = NamedJson{gguf_generation(*gguf), path.string()};
    if (gguf->metadata().find("tokenizer.ggml.model")) source.tokenizer = tokenizer_in(path, gguf);
    source.tensors = gguf_weights(path, gguf);
    return source;
}

void refuse_quantised(const fs::path& folder, const NamedJson& config) {
    std::optional<std::string> method = foreign_quantisation(config.json);
    if (!method) method = foreign_quantisation(folder);
    if (!method) return;
    const Json* type = config.json.find("model_type");
    throw Error(
        config.file + ": the weights" +
            (type && type->string() ? " of this " + in_quotes(*type->string()) + " model" : "") +
            " are quantised by " + *method +
            ", which aerie does not read; take the unquantised model, or a GGUF file of it",
        Cause::unsupported);
}

}  // namespace

bool is_gguf(const fs::path& path) {
    std::error_code ignored;
    return path.extension() == ".gguf" ||
           (fs::is_regular_file(path, ignored) && first_bytes(path, 4) == "GGUF");
}

std::string what_it_is_instead(const fs::path& path) {
    const std::string form = known_form(path);
    return form.empty() ? "neither a folder nor a GGUF file" : form;
}

TokenizerSource find_tokenizer(const fs::path& path) {
    if (is_gguf(path)) return tokenizer_in(path, opened_gguf(path));
    std::optional<TokenizerSource> source = tokenizer_in(path);
    if (!source)
        throw Error(path.string() + ": no tokenizer.json and no tokenizer.model", Cause::not_found);
    return *std::move(source);
}

ModelSource open_model(const fs::path& path) {
    if (is_gguf(path)) return open_gguf(path);
    std::optional<NamedJson> config = read_named(path, kConfig);
    if (!config && Checkpoint::is_in(path))
        throw Error((path / kConfig).string() + ": missing beside the weights", Cause::not_found);
    if (!config)
        throw Error(path.string() + ": no model: neither a .gguf file nor config.json is in it",
                    Cause::not_found);
    refuse_foreign(path, foreign_drafter(config->json));
    refuse_quantised(path, *config);
    ModelSource source;
    source.path = path;
    source.config = *std::move(config);
    source.generation = read_named(path, kGeneration);
    source.tokenizer = tokenizer_in(path);
    source.tensors = Checkpoint::open(path);
    refuse_foreign(path, foreign_drafter(source.tensors));
    return source;
}

}  // namespace aerie
