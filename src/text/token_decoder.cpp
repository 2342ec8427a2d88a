// The steps of a decoder over a list of tokens.
#include "text/token_decoder.h"

#include <algorithm>

#include "core/error.h"
#include "core/utf8.h"
#include "text/byte_alphabet.h"

namespace aerie {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
    std::string out;
    for (size_t at = 0;;) {
        const size_t next = what.empty() ? text.npos : text.find(what, at);
        out += text.substr(at, next == text.npos ? next : next - at);
        if (next == text.npos) return out;
        out += with;
        at = next + what.size();
    }
}

std::string joined(const std::vector<std::string>& tokens) {
    std::string all;
    for (const std::string& token : tokens) all += token;
    return all;
}

// One step over all tokens of a text.
struct Decode {
    std::vector<std::string>& tokens;
    Regex::Scratch& scratch;
    size_t most_bytes;  // limit for all tokens together

    void operator()(const TokenDecoder::ByteLevel&) const {
        std::string bytes, text;
        for (const std::string& token : tokens) bytes += bytes_of_token(token).value_or(token);
        append_utf8(text, bytes, true);
        tokens = {std::move(text)};
    }

    void operator()(const TokenDecoder::ByteFallback&) const {
        std::vector<std::string> out;
        std::string run;
        const auto flush = [&] {
            if (is_utf8(run)) {
                if (!run.empty()) out.push_back(run);
            } else {
                out.insert(out.end(), run.size(), std::string(kReplacement));
            }
            run.clear();
        };
        for (std::string& token : tokens) {
            if (const int byte = byte_of_token(token); byte >= 0) {
                run += char(byte);
                continue;
            }
            flush();
            out.push_back(std::move(token));
        }
        flush();
        tokens = std::move(out);
    }

    void operator()(const TokenDecoder::Fuse&) const { tokens = {joined(tokens)}; }

    void operator()(const TokenDecoder::Replace& step) const {
        const Normaliser replace({Normaliser::Replace{step.pattern, step.content}});
        size_t left = most_bytes;
        for (std::string& token : tokens) {
            token = replace.apply(std::move(token), scratch, left);
            left -= std::min(left, token.size());
        }
    }

    void operator()(const TokenDecoder::Strip& step) const {
        for (std::string& token : tokens) {
            size_t begin = 0;
            const size_t size = step.character.size();
            for (size_t i = 0; i < step.start && token.compare(begin, size, step.character) == 0;
                 ++i)
                begin += size;
            token.erase(0, begin);
            for (size_t i = 0; i < step.stop && token.ends_with(step.character); ++i)
                token.resize(token.size() - size);
        }
    }

    void operator()(const TokenDecoder::Metaspace& step) const {
        for (size_t i = 0; i < tokens.size(); ++i) {
            const char* space = i == 0 && step.prepends ? "" : " ";
            tokens[i] = replaced(tokens[i], step.replacement, space);
        }
    }
};

}  // namespace

TokenDecoder::TokenDecoder(std::vector<Step> steps, std::string separator)
    : steps_(std::move(steps)), separator_(std::move(separator)) {}

std::string TokenDecoder::decode(std::vector<std::string> tokens) const {
    if (steps_.empty()) {
        for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, separator_);
    }
    Regex::Scratch scratch;
    size_t bytes = 0;
    for (const std::string& token : tokens) bytes += token.size();
    const Decode decode{tokens, scratch, Normaliser::most_bytes(bytes)};
    for (const Step& step : steps_) std::visit(decode, step);
    return joined(tokens);
}

std::string TokenDecoder::bytes(std::string_view token, Regex::Scratch& scratch) const {
    std::string text(token);
    if (steps_.empty()) return separator_ + text;
    for (const Step& step : steps_) {
        if (std::holds_alternative<ByteLevel>(step)) {
            if (const auto bytes = bytes_of_token(text)) return *bytes;
        } else if (std::holds_alternative<ByteFallback>(step)) {
            if (const int byte = byte_of_token(text); byte >= 0) return std::string(1, char(byte));
        } else if (std::holds_alternative<Fuse>(step)) {
            break;  // the steps that follow concern the ends of the text
        } else if (const auto* metaspace = std::get_if<Metaspace>(&step)) {
            text = replaced(text, metaspace->replacement, " ");
        } else {
            std::vector<std::string> one = {std::move(text)};
            std::visit(Decode{one, scratch, Normaliser::most_bytes(token.size())}, step);
            text = std::move(one[0]);
        }
    }
    return text;
}

bool TokenDecoder::drops_leading_space() const {
    bool fused = false;
    for (const Step& step : steps_) {
        fused = fused || std::holds_alternative<Fuse>(step);
        const auto* strip = std::get_if<Strip>(&step);
        if (fused && strip && strip->start > 0 && strip->character == " ") return true;
        const auto* metaspace = std::get_if<Metaspace>(&step);
        if (metaspace && metaspace->prepends) return true;
    }
    return false;
}

}  // namespace aerie
