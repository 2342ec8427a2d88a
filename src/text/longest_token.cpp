// The longest spelling, times the factor by which normalisers may shrink a text.
#include "text/longest_token.h"

#include <algorithm>

#include "core/utf8.h"
#include "text/byte_alphabet.h"

namespace aerie {
namespace {

constexpr size_t kNone = 0;                // no bound
constexpr size_t kMost = size_t(1) << 20;  // a larger bound excludes no text that is accepted

// By which factor a step may shrink a text; kNone: by any.
struct Shrinks {
    // NFKC turns the 4 bytes of U+1D7CE into a digit, NFC the 7 of U+1FBE U+0308 U+0301 into the 2
    // of U+0390.
    size_t operator()(NormalForm) const { return 4; }
    size_t operator()(const Normaliser::Prepend&) const { return 1; }
    size_t operator()(const Normaliser::Strip&) const { return kNone; }
    size_t operator()(const Normaliser::Replace& step) const {
        const auto* text = std::get_if<std::string>(&step.pattern);
        if (!text || step.content.empty()) return kNone;
        return (text->size() + step.content.size() - 1) / step.content.size();
    }
};

size_t shrinking(const Normaliser& normaliser) {
    size_t all = 1;
    for (const Normaliser::Step& step : normaliser.steps()) {
        const size_t times = std::visit(Shrinks(), step);
        if (times == kNone || all > kMost / times) return kNone;
        all *= times;
    }
    return all;
}

bool takes_away(const PreTokens& pre_tokens) {
    for (const PreTokens::Step& step : pre_tokens.steps()) {
        const auto* split = std::get_if<PreTokens::Split>(&step);
        if (split && split->delimiter == Delimiter::removed) return true;
    }
    return false;
}

// Whether every character becomes tokens.
bool knows_all(const Bpe& bpe) {
    const BpeRules& rules = bpe.rules();
    if (!rules.byte_level && !rules.byte_fallback) return false;
    for (int byte = 0; byte < 256; ++byte) {
        std::string text = byte_token(uint8_t(byte));
        if (rules.byte_level) {
            text.clear();
            append_char(text, character_of_byte(uint8_t(byte)));
        }
        if (bpe.vocabulary().id_of(text) < 0) return false;
    }
    return true;
}

size_t characters(std::string_view text) {
    return size_t(std::count_if(text.begin(), text.end(),
                                [](char byte) { return (uint8_t(byte) & 0xC0) != 0x80; }));
}

size_t longest_spelling(const Bpe& bpe) {
    const Vocabulary& vocabulary = bpe.vocabulary();
    size_t longest = 0;
    for (int id = 0; id < vocabulary.size(); ++id) {
        const std::string_view text = vocabulary.text(id);
        const size_t bytes = bpe.rules().byte_level ? characters(text) : text.size();
        longest = std::max(longest, bytes);
    }
    return longest;
}

}  // namespace

size_t longest_token_bytes(const BpeTokenizer::Parts& parts) {
    constexpr size_t kCharacter = 4;  // the most bytes of a character that becomes an unknown token
    const BpeRules& rules = parts.bpe.rules();
    if (!knows_all(parts.bpe) && (rules.unknown < 0 || rules.fuse_unknown)) return kNone;
    if (takes_away(parts.pre_tokens)) return kNone;
    size_t longest = std::max(longest_spelling(parts.bpe), kCharacter);
    for (const AddedToken& token : parts.added.tokens()) {
        if (token.takes_left || token.takes_right) return kNone;
        longest = std::max({longest, token.text.size(), token.spelling.size()});
    }
    const size_t times = shrinking(parts.normaliser);
    return times == kNone || longest > kMost / times ? kNone : longest * times;
}

}  // namespace aerie
