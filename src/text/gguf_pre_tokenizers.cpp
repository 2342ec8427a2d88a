// The names are those that llama.cpp's converters write, with the meaning that llama.cpp's reader
// gives them. Where a published tokenizer.json cuts in another way, the tokenizer.json counts.
#include "text/gguf_pre_tokenizers.h"

#include <algorithm>

namespace aerie {
namespace {

constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Qwen 2's without the English endings, because Turkish endings begin with an apostrophe, too.
constexpr std::string_view kUfakzeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kMiniCpm5 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kJais2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))"
    R"(|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr std::string_view kHan = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";
constexpr std::string_view kHanAndKana = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Letters that have a case, as deepseek-llm's tokenizer.json lists them.
constexpr std::string_view kCased =
    "\\s?["
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293"
    "\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C"
    "\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5"
    "\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77"
    "\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59"
    "\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC"
    "\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107"
    "\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139"
    "\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE"
    "\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E"
    "\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F"
    "\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2"
    "\U000118A0-\U000118DF\U0001E900-\U0001E943"
    "]+";
constexpr std::string_view kMarks =
    "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+";

using Splits = GgufPreTokenizer::Splits;
constexpr Splits kDigitsGpt2{kDigit, kGpt2Split};
constexpr Splits kDeepseek3Splits{R"(\p{N}{1,3})", kHanAndKana, kDeepseek3};
constexpr Splits kDeepseekLlm{R"([\r\n])", kCased, kMarks, R"(\s+$)", kHan, kDigit};
constexpr Splits kDeepseekCoder{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kHan, kDigit};
constexpr Splits kDefault{R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Split, R"(\p{N}+)", "[0-9][0-9][0-9]"};
constexpr Splits kFalcon{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Split, "[0-9][0-9][0-9]"};

// If several rows have the same settings, files are written with the name of the first one.
constexpr GgufPreTokenizer kPreTokenizers[] = {
    {"gpt-2", {kGpt2Split}},
    {"llama-bpe", {kLlama3}, true, false, true},
    {"llama3", {kLlama3}, true, false, true},
    {"llama-v3", {kLlama3}, true, false, true},
    {"falcon3", {kLlama3}, true, false, true},
    {"falcon-h1", {kLlama3}, true, false, true},
    {"pixtral", {kLlama3}, true, false, true},
    {"midm-2.0", {kLlama3}, true, false, true},
    {"lfm2", {kLlama3}, true, false, true},
    {"smaug-bpe", {kLlama3}},
    {"dbrx", {kLlama3}},
    {"glm4", {kLlama3}},
    {"chatglm-bpe", {kLlama3}},
    {"qwen2", {kQwen2}, false, true},
    {"deepseek-r1-qwen", {kQwen2}, false, true},
    {"kormo", {kQwen2}},
    {"megrez", {kQwen2}},
    {"stablelm2", {kQwen2}},
    {"hunyuan", {kQwen2}},
    {"solar-open", {kQwen2}},
    {"grok-2", {kQwen2}},
    {"qwen35", {kQwen35}},
    {"ufakzeka", {kUfakzeka}},
    {"seed-coder", {kSeedCoder}},
    {"minicpm5", {R"(\p{N}{1,3})", kMiniCpm5}, true},
    {"jais-2", {kJais2}},
    {"bailingmoe", {kBailing}},
    {"bailingmoe2", {kBailing}},
    {"llada-moe", {kBailing}},
    {"tekken", {kTekken}, true, false, true},
    {"gpt-4o", {kO200k}},
    {"llama4", {kO200k}},
    {"kanana2", {kO200k}},
    {"talkie", {kO200k}},
    {"minimax-m2", {kO200k}},
    {"smollm", kDigitsGpt2},
    {"starcoder", kDigitsGpt2},
    {"refact", kDigitsGpt2},
    {"command-r", kDigitsGpt2},
    {"codeshell", kDigitsGpt2},
    {"exaone", kDigitsGpt2},
    {"minerva-7b", kDigitsGpt2},
    {"mellum2", kDigitsGpt2},
    {"phi-2", {kGpt2Split}},
    {"gigachat", {kGpt2Split}},
    {"a.x-4.0", {kGpt2Split}},
    {"mellum", {kGpt2Split}},
    {"exaone4", {kGpt2Split}},
    {"mpt", {kGpt2Split}},
    {"olmo", {kGpt2Split}},
    {"jais", {kGpt2Split}},
    {"trillion", {kGpt2Split}},
    {"granite-docling", {kGpt2Split}},
    {"deepseek-llm", kDeepseekLlm},
    {"deepseek-coder", kDeepseekCoder},
    {"deepseek-v3", kDeepseek3Splits},
    {"hunyuan-dense", kDeepseek3Splits},
    {"joyai-llm", kDeepseek3Splits},
    {"hy_v4", kDeepseek3Splits},
    {"bloom", {kBloom}},
    {"poro-chat", {kBloom}},
    {"gpt3-finnish", {kBloom}},
    {"viking", {kBloom, kDigit}},
    {"falcon", kFalcon},
    {"default", kDefault},
};

// Expressions with matches that leave no text in between.
constexpr std::string_view kWhole[] = {kGpt2Split, kLlama3, kQwen2, kTekken, kO200k};

// The expression in the spelling of the table: files have line ends as characters, and quotes with
// a backslash.
std::string spelling(std::string_view pattern) {
    std::string out;
    for (size_t i = 0; i < pattern.size(); ++i) {
        const char next = pattern[i];
        if (next == '\\' && i + 1 < pattern.size()) {
            if (pattern[++i] != '"') out += next;
            out += pattern[i];
        } else if (next == '\r' || next == '\n') {
            out += next == '\r' ? "\\r" : "\\n";
        } else {
            out += next;
        }
    }
    return out;
}

// tiktoken's vocabularies are published with the text between the matches removed.
bool is_cut_at_matches(const PreTokens::Split& split, std::string_view pattern) {
    if (split.delimiter == Delimiter::isolated) return !split.inverted;
    return split.delimiter == Delimiter::removed && split.inverted &&
           std::find(std::begin(kWhole), std::end(kWhole), pattern) != std::end(kWhole);
}

// The expressions that cut a text one after the other; empty: something else cuts it, too.
std::vector<std::string> splits_of(const PreTokens& pre_tokens) {
    std::vector<std::string> splits;
    for (const PreTokens::Step& step : pre_tokens.steps()) {
        const auto* split = std::get_if<PreTokens::Split>(&step);
        const auto* regex = split ? std::get_if<Regex>(&split->pattern) : nullptr;
        if (!regex) return {};
        splits.push_back(spelling(regex->pattern()));
        if (!is_cut_at_matches(*split, splits.back())) return {};
    }
    return splits;
}

bool is_same(const GgufPreTokenizer& pre_tokenizer, const std::vector<std::string>& splits) {
    const size_t count =
        size_t(std::find(pre_tokenizer.splits.begin(), pre_tokenizer.splits.end(), "") -
               pre_tokenizer.splits.begin());
    return count == splits.size() &&
           std::equal(splits.begin(), splits.end(), pre_tokenizer.splits.begin());
}

}  // namespace

PreTokens GgufPreTokenizer::pre_tokens() const {
    std::vector<PreTokens::Step> steps;
    for (const std::string_view split : splits)
        if (!split.empty()) steps.emplace_back(PreTokens::Split{Regex(split)});
    return PreTokens(std::move(steps));
}

Normaliser GgufPreTokenizer::normaliser() const {
    return nfc ? Normaliser({NormalForm::nfc}) : Normaliser();
}

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
    for (const GgufPreTokenizer& pre_tokenizer : kPreTokenizers)
        if (pre_tokenizer.name == name) return &pre_tokenizer;
    return nullptr;
}

const GgufPreTokenizer* find_gguf_pre_tokenizer(const BpeTokenizer::Parts& parts) {
    const std::vector<std::string> splits = splits_of(parts.pre_tokens);
    const auto& normal = parts.normaliser.steps();
    const auto* form = normal.size() == 1 ? std::get_if<NormalForm>(&normal[0]) : nullptr;
    const bool nfc = form && *form == NormalForm::nfc;
    if (splits.empty() || (!normal.empty() && !nfc)) return nullptr;
    for (const GgufPreTokenizer& pre_tokenizer : kPreTokenizers) {
        if (is_same(pre_tokenizer, splits) && pre_tokenizer.nfc == nfc &&
            pre_tokenizer.ignore_merges == parts.bpe.rules().ignore_merges)
            return &pre_tokenizer;
    }
    return nullptr;
}

std::string gguf_pre_tokenizer_names() {
    std::string names;
    for (const GgufPreTokenizer& pre_tokenizer : kPreTokenizers)
        names += (names.empty() ? "" : ", ") + std::string(pre_tokenizer.name);
    return names;
}

}  // namespace aerie
