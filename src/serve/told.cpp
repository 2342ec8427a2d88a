#include "serve/told.h"

#include <algorithm>

namespace aerie {

namespace {

// The bytes of a token as text; not all of them are whole characters.
Json token_text(const Tokenizer& tokenizer, int id) {
    return std::string(tokenizer.bytes(id));  // repaired where it is written
}

Json bytes_json(const Tokenizer& tokenizer, int id) {
    Json::Array bytes;
    for (const char byte : tokenizer.bytes(id)) bytes.push_back(int((unsigned char)byte));
    return bytes;
}

Json::Object chat_entry(const Tokenizer& tokenizer, int id, float logprob) {
    return {{"token", token_text(tokenizer, id)},
            {"logprob", logprob},
            {"bytes", bytes_json(tokenizer, id)}};
}

std::span<const TokenLogprob> alternatives_of(const GenerationResult& result, size_t token) {
    const size_t count = result.alternatives.size() / result.ids.size();
    return std::span(result.alternatives).subspan(token * count, count);
}

}  // namespace

size_t Told::tokens_until(const GenerationResult& result, bool is_over) {
    const bool is_stopped = is_over && result.finish == FinishReason::stop;
    const bool at_eos =
        is_stopped && std::count(eos_ids_.begin(), eos_ids_.end(), result.ids.back());
    if (is_over && (!is_stopped || at_eos)) return result.ids.size() - size_t(at_eos);
    size_t end = tokens_, offset = next_offset_;
    while (end < result.ids.size() && offset < result.text.size())
        offset += tokenizer_.bytes(result.ids[end++]).size();
    return end;
}

Told::News Told::take(const GenerationResult& result, bool is_over) {
    News news;
    news.text = result.text.substr(text_bytes_);
    news.pieces = std::move(pieces_);
    pieces_.clear();
    news.first = tokens_;
    news.last = result.ids.empty() ? 0 : tokens_until(result, is_over);
    for (size_t i = news.first; i < news.last; ++i) {
        const std::string_view bytes = tokenizer_.bytes(result.ids[i]);
        const bool drops = i == 0 && tokenizer_.drops_leading_space() && bytes.starts_with(' ');
        news.offsets.push_back(next_offset_);
        next_offset_ += bytes.size() - size_t(drops);
    }
    tokens_ = news.last;
    text_bytes_ = result.text.size();
    return news;
}

Json chat_logprobs(const Tokenizer& tokenizer, const GenerationResult& result,
                   const Told::News& news) {
    Json::Array content;
    for (size_t i = news.first; i < news.last; ++i) {
        Json::Array top;
        for (const TokenLogprob& other : alternatives_of(result, i))
            top.push_back(chat_entry(tokenizer, other.id, other.logprob));
        Json::Object entry = chat_entry(tokenizer, result.ids[i], result.logprobs[i]);
        entry.emplace_back("top_logprobs", std::move(top));
        content.push_back(std::move(entry));
    }
    return Json::Object{{"content", std::move(content)}, {"refusal", Json()}};
}

Json text_logprobs(const Tokenizer& tokenizer, const GenerationResult& result,
                   const Told::News& news) {
    Json::Array tokens, logprobs, tops, offsets;
    for (size_t i = news.first; i < news.last; ++i) {
        tokens.push_back(token_text(tokenizer, result.ids[i]));
        logprobs.push_back(result.logprobs[i]);
        // Tokens that are spelled alike are one member; the first is the likeliest.
        Json::Object top;
        for (const TokenLogprob& other : alternatives_of(result, i)) {
            const std::string text(tokenizer.bytes(other.id));
            const bool is_there =
                std::any_of(top.begin(), top.end(), [&](const auto& t) { return t.first == text; });
            if (!is_there) top.emplace_back(text, other.logprob);
        }
        tops.push_back(std::move(top));
        offsets.push_back(int64_t(news.offsets[i - news.first]));
    }
    return Json::Object{{"tokens", std::move(tokens)},
                        {"token_logprobs", std::move(logprobs)},
                        {"top_logprobs", std::move(tops)},
                        {"text_offset", std::move(offsets)}};
}

Json pieces_json(const std::vector<Piece>& pieces) {
    Json::Array all;
    for (const Piece& piece : pieces) {
        const bool drafted = piece.origin.kind == Origin::Kind::from_draft;
        const bool first = piece.origin.kind == Origin::Kind::after_prompt;
        all.push_back(Json::Object{{"text", piece.text},
                                   {"from", drafted ? "draft"
                                            : first ? "prompt"
                                                    : "target"},
                                   {"depth", piece.origin.depth}});
    }
    return all;
}

}  // namespace aerie
