// Normalisers, pre-tokenisers, post-processors, decoders and added tokens of tokenizer.json.
#include "core/error.h"
#include "core/utf8.h"
#include "text/tokenizer_json.h"

namespace aerie::tokenizer_json {
namespace {

// Parts of published files have fewer than ten steps; each step is a walk through every text.
constexpr size_t kMaxSteps = 32;
constexpr size_t kMaxAdded = 65'536;
constexpr size_t kMaxPatternBytes = 1024;  // for plain texts, which are searched byte by byte

template <typename Steps>
void check_count(const Steps& steps, const char* what) {
    if (steps.size() == kMaxSteps) {
        throw Error(std::string(what) + " of more than " + std::to_string(kMaxSteps) + " steps");
    }
}

[[noreturn]] void refuse(const std::string& what, const std::string& value) {
    throw Error(what + " " + in_quotes(value) + " is not supported", Cause::unsupported);
}

const Json& member(const Json& part, const char* name) {
    const Json* value = part.find(name);
    if (!value) throw Error(std::string("a part lacks ") + in_quotes(name));
    return *value;
}

void add_normaliser(const Json& part, std::vector<Normaliser::Step>& steps) {
    check_count(steps, "normalizer");
    const std::string& type = type_of(part, "normalizer");
    if (type == "Sequence") {
        for (const Json& inner : array(part, "normalizers")) add_normaliser(inner, steps);
    } else if (type == "NFC") {
        steps.emplace_back(NormalForm::nfc);
    } else if (type == "NFD") {
        steps.emplace_back(NormalForm::nfd);
    } else if (type == "NFKC") {
        steps.emplace_back(NormalForm::nfkc);
    } else if (type == "NFKD") {
        steps.emplace_back(NormalForm::nfkd);
    } else if (type == "Prepend") {
        steps.emplace_back(Normaliser::Prepend{string(part, "prepend")});
    } else if (type == "Replace") {
        steps.emplace_back(Normaliser::Replace{pattern(part), string(part, "content")});
    } else if (type == "Strip") {
        steps.emplace_back(Normaliser::Strip{flag(part, "strip_left"), flag(part, "strip_right")});
    } else {
        refuse("normalizer", type);
    }
}

Delimiter delimiter(const std::string& name) {
    if (name == "Isolated") return Delimiter::isolated;
    if (name == "Removed") return Delimiter::removed;
    if (name == "MergedWithPrevious") return Delimiter::merged_with_previous;
    if (name == "MergedWithNext") return Delimiter::merged_with_next;
    if (name == "Contiguous") return Delimiter::contiguous;
    refuse("behavior", name);
}

bool prepends(PreTokens::Metaspace::Prepend prepend) {
    return prepend != PreTokens::Metaspace::Prepend::never;
}

PreTokens::Metaspace metaspace(const Json& part) {
    using Prepend = PreTokens::Metaspace::Prepend;
    const bool yes = true;
    PreTokens::Metaspace step{string(part, "replacement")};
    if (step.replacement.empty()) throw Error("Metaspace has an empty replacement");
    std::string_view rest = step.replacement;
    take_char(rest);
    if (!rest.empty()) throw Error("Metaspace has a replacement of more than one character");
    step.splits = flag(part, "split", &yes);
    if (part.find("prepend_scheme")) {
        const std::string& scheme = string(part, "prepend_scheme");
        if (scheme != "always" && scheme != "first" && scheme != "never") {
            refuse("prepend_scheme", scheme);
        }
        step.prepend = scheme == "always"  ? Prepend::always
                       : scheme == "first" ? Prepend::first
                                           : Prepend::never;
    }
    if (!flag(part, "add_prefix_space", &yes)) step.prepend = Prepend::never;
    return step;
}

void add_cut(const Json& part, std::vector<PreTokens::Step>& steps, bool& byte_level) {
    check_count(steps, "pre_tokenizer");
    const std::string& type = type_of(part, "pre_tokenizer");
    if (byte_level) throw Error("pre_tokenizer " + in_quotes(type) + " after ByteLevel");
    if (type == "Sequence") {
        for (const Json& inner : array(part, "pretokenizers")) add_cut(inner, steps, byte_level);
    } else if (type == "Split") {
        steps.emplace_back(PreTokens::Split{pattern(part), delimiter(string(part, "behavior")),
                                            flag(part, "invert")});
    } else if (type == "Digits") {
        steps.emplace_back(PreTokens::Split{Regex("\\p{N}"), flag(part, "individual_digits")
                                                                 ? Delimiter::isolated
                                                                 : Delimiter::contiguous});
    } else if (type == "Metaspace") {
        steps.emplace_back(metaspace(part));
    } else if (type == "ByteLevel") {
        const bool yes = true;
        if (flag(part, "add_prefix_space")) steps.emplace_back(PreTokens::PrefixSpace{});
        if (flag(part, "use_regex", &yes)) {
            steps.emplace_back(PreTokens::Split{Regex(kGpt2Split)});
        }
        byte_level = true;
    } else {
        refuse("pre_tokenizer", type);
    }
}

// The ids of a special token of a template, by its name.
void append_ids(const Json& part, const std::string& name, std::vector<int>& ids) {
    const Json* token = member(part, "special_tokens").find(name);
    if (!token) throw Error("the template names " + in_quotes(name) + ", which it does not define");
    for (const Json& id : array(*token, "ids")) {
        int64_t value = 0;
        if (!id.integer(value) || value < 0 || value >= Vocabulary::kMaxIds) {
            throw Error("the template's " + in_quotes(name) + " is no list of ids");
        }
        ids.push_back(int(value));
    }
}

Around of_template(const Json& part) {
    Around around;
    bool after = false;
    for (const Json& piece : array(part, "single")) {
        if (const Json* token = piece.find("SpecialToken")) {
            append_ids(part, string(*token, "id"), after ? around.suffix : around.prefix);
            continue;
        }
        const Json* sequence = piece.find("Sequence");
        if (!sequence || string(*sequence, "id") != "A" || after) {
            throw Error("the template for a single text is none");
        }
        after = true;
    }
    if (!after) throw Error("the template for a single text is none");
    return around;
}

void add_around(const Json& part, Around& around) {
    const std::string& type = type_of(part, "post_processor");
    if (type == "Sequence") {
        for (const Json& inner : array(part, "processors")) add_around(inner, around);
    } else if (type == "TemplateProcessing") {
        Around outer = of_template(part);
        outer.prefix.insert(outer.prefix.end(), around.prefix.begin(), around.prefix.end());
        around.prefix = std::move(outer.prefix);
        around.suffix.insert(around.suffix.end(), outer.suffix.begin(), outer.suffix.end());
    } else if (type != "ByteLevel") {  // ByteLevel only moves offsets
        refuse("post_processor", type);
    }
}

void add_decoder(const Json& part, std::vector<TokenDecoder::Step>& steps) {
    check_count(steps, "decoder");
    const std::string& type = type_of(part, "decoder");
    if (type == "Sequence") {
        for (const Json& inner : array(part, "decoders")) add_decoder(inner, steps);
    } else if (type == "ByteLevel") {
        steps.emplace_back(TokenDecoder::ByteLevel{});
    } else if (type == "ByteFallback") {
        steps.emplace_back(TokenDecoder::ByteFallback{});
    } else if (type == "Fuse") {
        steps.emplace_back(TokenDecoder::Fuse{});
    } else if (type == "Replace") {
        steps.emplace_back(TokenDecoder::Replace{pattern(part), string(part, "content")});
    } else if (type == "Strip") {
        const std::string& content = string(part, "content");
        if (content.empty()) throw Error("decoder 'Strip' strips nothing");
        steps.emplace_back(TokenDecoder::Strip{content, count(part, "start"), count(part, "stop")});
    } else if (type == "Metaspace") {
        const PreTokens::Metaspace step = metaspace(part);
        steps.emplace_back(TokenDecoder::Metaspace{step.replacement, prepends(step.prepend)});
    } else {
        refuse("decoder", type);
    }
}

}  // namespace

const std::string& type_of(const Json& part, const std::string& what) {
    const Json* type = part.find("type");
    if (!type || !type->string()) throw Error(what + " has no type");
    return *type->string();
}

bool flag(const Json& part, const char* name, const bool* fallback) {
    const Json* value = part.find(name);
    if (absent(value) && fallback) return *fallback;
    if (!value || !value->boolean()) throw Error(in_quotes(name) + " of a part is no boolean");
    return *value->boolean();
}

const std::string& string(const Json& part, const char* name) {
    const std::string* text = member(part, name).string();
    if (!text) throw Error(in_quotes(name) + " of a part is no string");
    return *text;
}

const Json::Array& array(const Json& part, const char* name) {
    const Json::Array* list = member(part, name).array();
    if (!list) throw Error(in_quotes(name) + " of a part is no list");
    return *list;
}

size_t count(const Json& part, const char* name) {
    int64_t value = 0;
    if (!member(part, name).integer(value) || value < 0 || value >= Vocabulary::kMaxIds) {
        throw Error(in_quotes(name) + " of a part is no count");
    }
    return size_t(value);
}

Pattern pattern(const Json& part) {
    const Json& value = member(part, "pattern");
    if (const Json* text = value.find("String"); text && text->string()) {
        if (text->string()->size() > kMaxPatternBytes) throw Error("a pattern of more than 1 KB");
        return *text->string();
    }
    if (const Json* regex = value.find("Regex"); regex && regex->string()) {
        return Regex(*regex->string());
    }
    throw Error("'pattern' of a part is neither a String nor a Regex");
}

std::vector<AddedToken> added_tokens(const Json* part) {
    std::vector<AddedToken> tokens;
    if (absent(part)) return tokens;
    if (!part->array()) throw Error("added_tokens is no list");
    if (part->array()->size() > kMaxAdded) {
        throw Error("more than " + std::to_string(kMaxAdded) + " added tokens");
    }
    const bool no = false;
    for (const Json& entry : *part->array()) {
        AddedToken token;
        token.text = string(entry, "content");
        token.id = int(count(entry, "id"));
        token.single_word = flag(entry, "single_word", &no);
        token.takes_left = flag(entry, "lstrip", &no);
        token.takes_right = flag(entry, "rstrip", &no);
        token.special = flag(entry, "special", &no);
        const bool by_default = !token.special;
        token.normalised = flag(entry, "normalized", &by_default);
        tokens.push_back(std::move(token));
    }
    return tokens;
}

Normaliser normaliser(const Json* part) {
    std::vector<Normaliser::Step> steps;
    if (!absent(part)) add_normaliser(*part, steps);
    return Normaliser(std::move(steps));
}

Cutting cutting(const Json* part) {
    Cutting cutting;
    std::vector<PreTokens::Step> steps;
    if (!absent(part)) add_cut(*part, steps, cutting.byte_level);
    cutting.pre_tokens = PreTokens(std::move(steps));
    return cutting;
}

Around around(const Json* part) {
    Around around;
    if (!absent(part)) add_around(*part, around);
    return around;
}

TokenDecoder decoder(const Json* part) {
    if (absent(part)) return TokenDecoder({}, " ");
    std::vector<TokenDecoder::Step> steps;
    add_decoder(*part, steps);
    return TokenDecoder(std::move(steps));
}

}  // namespace aerie::tokenizer_json
