// Chooses the rules by the tokenizer's format, and adds what the files beside it say.
#include "text/tokenizer.h"

#include "core/error.h"
#include "core/utf8.h"
#include "io/input_file.h"
#include "text/gguf_tokenizer.h"
#include "text/longest_token.h"
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

// The template is a string, or the one named "default" in a list of {"name", "template"}.
std::string template_of(const NamedJson& config) {
    const Json* known = config.json.find("chat_template");
    if (!known || known->is_null()) return "";
    if (known->string()) return *known->string();
    const auto fail = [&] {
        throw Error(config.file + ": 'chat_template' is neither a text nor a list of named texts");
    };
    if (!known->array()) fail();
    for (const Json& entry : *known->array()) {
        if (!entry.object()) fail();
        const Json *name = entry.find("name"), *text = entry.find("template");
        if (name && name->string() && *name->string() == "default" && text && text->string())
            return *text->string();
    }
    return "";
}

// A class of transformers 4 with a constructor that sets the ids around a text by add_bos_token and
// add_eos_token, and its BOS and EOS for a configuration that names none.
struct FlaggedClass {
    const char *name, *bos, *eos;
};
constexpr FlaggedClass kFlaggedClasses[] = {
    {"LlamaTokenizer", "<s>", "</s>"},
    {"CodeLlamaTokenizer", "<s>", "</s>"},
    {"GemmaTokenizer", "<bos>", "<eos>"},
    {"CohereTokenizer", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"},
    {"GPTNeoXTokenizer", "<|endoftext|>", "<|endoftext|>"},
};

// nullptr: tokenizer_class is another one, or missing.
const FlaggedClass* flagged_class(const Json& config) {
    const Json* named = config.find("tokenizer_class");
    if (!named || !named->string()) return nullptr;
    std::string_view name = *named->string();
    if (name.ends_with("Fast")) name.remove_suffix(4);
    for (const FlaggedClass& known : kFlaggedClasses)
        if (name == known.name) return &known;
    return nullptr;
}

}  // namespace

Tokenizer::Tokenizer(BpeTokenizer bpe, std::string file)
    : bpe_(std::move(bpe)),
      file_(std::move(file)),
      longest_token_bytes_(aerie::longest_token_bytes(bpe_.parts())),
      prefix_(bpe_.prefix()),
      suffix_(bpe_.suffix()) {}

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
    read_around(config, format);
}

// Whether BOS and EOS belong around a text. A tokenizer.json says so itself, but transformers'
// classes for Llama's and similar vocabularies replace that by flags of their own.
void Tokenizer::read_around(const NamedJson& config, Format format) {
    const bool is_json = format == Format::tokenizer_json;
    const FlaggedClass* own = flagged_class(config.json);
    if (is_json && !own) return;
    const auto read = [&](const char* key, int id, const char* name, const char* usual,
                          std::vector<int>& around) {
        const Json* flag = config.json.find(key);
        if (!flag || flag->is_null()) return;
        if (!flag->boolean()) throw Error(config.file + ": " + key + " is no boolean");
        if (id < 0 && own) id = bpe_.id_of(usual);
        if (*flag->boolean() && id < 0)
            throw Error(config.file + ": " + key + " is true, but no token is " + name);
        around.clear();
        if (*flag->boolean()) around.push_back(id);
    };
    if (!is_json && bos_ >= 0) prefix_ = {bos_};
    if (!is_json && bos_ < 0) prefix_.clear();
    read("add_bos_token", bos_, "BOS", own ? own->bos : "", prefix_);
    read("add_eos_token", eos_, "EOS", own ? own->eos : "", suffix_);
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

std::vector<int> Tokenizer::encode_whole(std::string_view text, Recognised recognised) const {
    std::vector<int> ids = encode_from_start(text, recognised);
    ids.insert(ids.end(), suffix_.begin(), suffix_.end());
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
