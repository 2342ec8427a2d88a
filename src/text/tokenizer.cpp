// Which engine's rules a tokenizer follows, and what the files beside it add.
#include "text/tokenizer.h"

#include "core/error.h"
#include "core/utf8.h"
#include "io/input_file.h"
#include "text/gguf_tokenizer.h"
#include "text/scored_pieces.h"

namespace aerie {
namespace {

using Format = TokenizerSource::Format;

constexpr size_t kMaxBytes = 128 << 20;

// Added tokens are written as a string or as {"content": string}; null or absent is none.
const std::string* special_token(const NamedJson& config, const char* key) {
    const Json* token = config.json.find(key);
    if (!token || token->is_null()) return nullptr;
    if (const Json* content = token->find("content")) token = content;
    if (!token->string()) throw Error(config.file + ": " + key + " is no token");
    return token->string();
}

// A string, or a list of {"name", "template"} of which "default" counts.
std::string template_of(const NamedJson& config) {
    const Json* known = config.json.find("chat_template");
    if (!known) return "";
    if (known->string()) return *known->string();
    if (!known->array()) return "";
    for (const Json& entry : *known->array()) {
        const Json *name = entry.find("name"), *text = entry.find("template");
        if (name && name->string() && *name->string() == "default" && text && text->string())
            return *text->string();
    }
    return "";
}

}  // namespace

Tokenizer::Tokenizer(BpeTokenizer bpe, std::string file)
    : bpe_(std::move(bpe)), file_(std::move(file)), prefix_(bpe_.prefix()) {}

Tokenizer Tokenizer::from_bytes(std::string_view model, const std::string& file) {
    const ScoredPieces pieces = read_sentencepiece(model, file);
    Tokenizer tokenizer(tokenizer_of(pieces), file);
    tokenizer.bos_ = pieces.bos;
    tokenizer.eos_ = pieces.eos;
    tokenizer.name_tokens();
    return tokenizer;
}

Tokenizer Tokenizer::of_gguf(const TokenizerSource& source) {
    GgufTokenizer made = gguf_tokenizer(source.gguf->metadata());
    Tokenizer tokenizer(std::move(made.bpe), source.file);
    tokenizer.bos_ = made.bos;
    tokenizer.eos_ = made.eos;
    tokenizer.chat_template_ = {std::move(made.chat_template),
                                source.file + ": tokenizer.chat_template"};
    tokenizer.name_tokens();
    return tokenizer;
}

Tokenizer Tokenizer::load(const TokenizerSource& source) {
    if (source.format == Format::gguf) return of_gguf(source);
    const std::string bytes = read_text(source.path, kMaxBytes);
    Tokenizer tokenizer = source.format == Format::sentencepiece
                              ? from_bytes(bytes, source.file)
                              : Tokenizer(BpeTokenizer::from_json(bytes, source.file), source.file);
    if (source.config) tokenizer.read_config(*source.config, source.format);
    if (source.chat_template) tokenizer.chat_template_ = *source.chat_template;
    return tokenizer;
}

void Tokenizer::read_config(const NamedJson& config, Format format) {
    if (!config.json.object()) throw Error(config.file + ": no JSON object");
    for (const auto& [name, id] :
         {std::pair<const char*, int*>{"bos_token", &bos_}, {"eos_token", &eos_}}) {
        const std::string* token = special_token(config, name);
        if (!token) continue;
        *id = bpe_.id_of(*token);
        if (*id < 0)
            throw Error(config.file + ": " + in_quotes(*token) + " is not a token of " +
                        std::filesystem::path(file_).filename().string());
    }
    name_tokens();
    for (const char* name : {"unk_token", "pad_token"})
        if (const std::string* token = special_token(config, name))
            named_.emplace_back(name, *token);
    chat_template_ = {template_of(config), config.file + ": chat_template"};
    if (format == Format::tokenizer_json) return;  // which says itself what belongs around a text
    const Json* flag = config.json.find("add_bos_token");
    const bool is_given = flag && !flag->is_null();
    if (is_given && !flag->boolean()) throw Error(config.file + ": add_bos_token is no boolean");
    if (is_given && *flag->boolean() && bos_ < 0)
        throw Error(config.file + ": add_bos_token is true, but no token is BOS");
    prefix_.clear();
    if (bos_ >= 0 && (!is_given || *flag->boolean())) prefix_ = {bos_};
}

void Tokenizer::name_tokens() {
    named_.clear();
    if (bos_ >= 0) named_.emplace_back("bos_token", bpe_.text(bos_));
    if (eos_ >= 0) named_.emplace_back("eos_token", bpe_.text(eos_));
}

std::vector<int> Tokenizer::encode_from_start(std::string_view text, Recognised recognised) const {
    std::vector<int> ids = prefix_;
    const std::vector<int> middle = bpe_.encode(text, recognised);
    ids.insert(ids.end(), middle.begin(), middle.end());
    return ids;
}

std::string Tokenizer::decode(const std::vector<int>& ids) const {
    std::string raw;
    for (const int id : ids) raw += bytes(id);
    std::string text;
    append_utf8(text, raw, true);
    if (drops_leading_space() && text.starts_with(' ')) text.erase(0, 1);
    return text;
}

}  // namespace aerie
