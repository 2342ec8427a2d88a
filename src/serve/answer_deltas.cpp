#include "serve/answer_deltas.h"

#include <algorithm>

#include "core/utf8.h"

namespace aerie {

namespace {

// The bytes of a token as text; not all of them are whole characters.
Json token_text(const Tokenizer& tokenizer, int id) {
    return std::string(tokenizer.bytes(id));  // made valid UTF-8 when it is written
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

size_t characters(std::string_view utf8) {
    return size_t(
        std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

// The offset of a token whose first byte is `first`.
size_t TokenOffsets::offset_of(char first) const {
    if (unfinished_.empty()) return characters_;
    std::string whole;
    const size_t taken = append_utf8(whole, unfinished_ + first, false);
    // The byte continues the unfinished character, or that ends before it as it is (as U+FFFD).
    const bool goes_on = taken == 0 || (taken > unfinished_.size() && characters(whole) == 1);
    return characters_ + (goes_on ? 0 : 1);
}

size_t TokenOffsets::take(std::string_view bytes) {
    const size_t offset = bytes.empty() ? characters_ : offset_of(bytes.front());
    std::string whole;
    unfinished_ += bytes;
    unfinished_.erase(0, append_utf8(whole, unfinished_, false));
    characters_ += characters(whole);
    if (!started_ && !whole.empty()) {
        started_ = true;
        characters_ -= whole.front() == ' ';
    }
    return offset;
}

AnswerDeltas::Delta AnswerDeltas::take(const GenerationResult& result, bool is_over) {
    Delta delta;
    delta.text = result.text.substr(text_bytes_);
    delta.pieces = std::move(pieces_);
    pieces_.clear();
    text_bytes_ = result.text.size();
    characters_ += characters(delta.text);
    const bool is_stopped = is_over && result.finish == FinishReason::stop;
    const bool at_eos = is_stopped && !result.ids.empty() &&
                        std::count(eos_ids_.begin(), eos_ids_.end(), result.ids.back());
    // If no stop string has cut the text, every token is reported, even one without any text.
    const bool all = is_over && (!is_stopped || at_eos);
    const size_t end = result.ids.size() - size_t(at_eos);
    delta.first = tokens_;
    for (; tokens_ < end; ++tokens_) {
        TokenOffsets after = next_offset_;
        const size_t offset = after.take(tokenizer_.bytes(result.ids[tokens_]));
        if (!all && offset >= characters_) break;
        delta.offsets.push_back(offset);
        next_offset_ = std::move(after);
    }
    delta.last = tokens_;
    return delta;
}

Json chat_logprobs(const Tokenizer& tokenizer, const GenerationResult& result,
                   const AnswerDeltas::Delta& delta) {
    Json::Array content;
    for (size_t i = delta.first; i < delta.last; ++i) {
        Json::Array top;
        for (const TokenLogprob& other : alternatives_of(result, i))
            top.push_back(chat_entry(tokenizer, other.id, other.logprob));
        Json::Object entry = chat_entry(tokenizer, result.ids[i], result.logprobs[i]);
        entry.emplace_back("top_logprobs", std::move(top));
        content.push_back(std::move(entry));
    }
    Json all;  // A braced list would copy it.
    all.set("content", std::move(content));
    all.set("refusal", Json());
    return all;
}

Json text_logprobs(const Tokenizer& tokenizer, const GenerationResult& result,
                   const AnswerDeltas::Delta& delta) {
    Json::Array tokens, logprobs, tops, offsets;
    for (size_t i = delta.first; i < delta.last; ++i) {
        tokens.push_back(token_text(tokenizer, result.ids[i]));
        logprobs.push_back(result.logprobs[i]);
        // Alternatives with the same text become one member: the first one, which is the likeliest.
        Json::Object top;
        for (const TokenLogprob& other : alternatives_of(result, i)) {
            std::string text;
            append_utf8(text, tokenizer.bytes(other.id), true);
            const bool is_there =
                std::any_of(top.begin(), top.end(), [&](const auto& t) { return t.first == text; });
            if (!is_there) top.emplace_back(text, other.logprob);
        }
        tops.push_back(std::move(top));
        offsets.push_back(int64_t(delta.offsets[i - delta.first]));
    }
    Json all;  // A braced list would copy them.
    all.set("tokens", std::move(tokens));
    all.set("token_logprobs", std::move(logprobs));
    all.set("top_logprobs", std::move(tops));
    all.set("text_offset", std::move(offsets));
    return all;
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
