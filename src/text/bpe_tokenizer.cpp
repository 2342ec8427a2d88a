// Puts the parts of a tokenizer together.
#include "text/bpe_tokenizer.h"

#include <cassert>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

constexpr size_t kMaxTextBytes = size_t(64) << 20;
// Limit for the decoded bytes of all tokens: a decoder may replace a short text by a long one.
constexpr size_t kMaxTokenBytes = size_t(64) << 20;
constexpr size_t kMaxDecoding = size_t(1) << 22;  // tokens times steps of the decoder

}  // namespace

BpeTokenizer::BpeTokenizer(Parts parts) : parts_(std::make_shared<const Parts>(std::move(parts))) {
    try {
        name_tokens();
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        throw Error(parts_->file + ": " + error.what(), error.cause());
    }
}

void BpeTokenizer::name_tokens() {
    const Vocabulary& vocabulary = parts_->bpe.vocabulary();
    const std::vector<AddedToken>& added = parts_->added.tokens();
    names_.resize(size_t(vocabulary.size()));
    for (size_t i = 0; i < added.size(); ++i) {
        const AddedToken& token = added[i];
        const std::string shown = "added token " + in_quotes(token.text);
        if (token.id < 0 || token.id >= Vocabulary::kMaxIds) {
            throw Error(shown + " has the id " + std::to_string(token.id) +
                        ", which is out of range");
        }
        const int known = vocabulary.id_of(token.text);
        if (known >= 0 ? known != token.id : vocabulary.has(token.id)) {
            throw Error(shown + " has the id " + std::to_string(token.id) +
                        ", but the vocabulary says otherwise");
        }
        if (size_t(token.id) >= names_.size()) names_.resize(size_t(token.id) + 1);
        Name& name = names_[size_t(token.id)];
        name.is_added = true;
        name.added = uint32_t(i);
        name.is_special = token.special;
    }
    if (names_.size() * parts_->decoder.steps() > kMaxDecoding) {
        throw Error("a decoder of " + std::to_string(parts_->decoder.steps()) + " steps for " +
                    std::to_string(size()) + " tokens");
    }
    Regex::Scratch scratch;
    for (int id = 0; id < size(); ++id) {
        Name& name = names_[size_t(id)];
        name.is_used = name.is_added || vocabulary.has(id);
        name.begin = uint32_t(bytes_.size());
        if (name.is_used && !name.is_special) {
            bytes_ += parts_->decoder.bytes(spelling(id), scratch);
        }
        if (bytes_.size() > kMaxTokenBytes) throw Error("tokens of more than 64 MB when decoded");
        name.size = uint32_t(bytes_.size() - name.begin);
    }
    for (const auto* around : {&parts_->prefix, &parts_->suffix}) {
        for (const int id : *around) {
            if (text(id).empty()) {
                throw Error("the post-processor adds " + std::to_string(id) +
                            ", which is no token");
            }
        }
    }
}

int BpeTokenizer::id_of(std::string_view text) const {
    for (const AddedToken& token : parts_->added.tokens()) {
        if (token.text == text) return token.id;
    }
    return parts_->bpe.vocabulary().id_of(text);
}

std::string_view BpeTokenizer::text(int id) const {
    if (id < 0 || id >= size()) return {};
    const Name& name = names_[size_t(id)];
    if (name.is_added) return parts_->added.tokens()[name.added].text;
    return parts_->bpe.vocabulary().text(id);
}

std::string_view BpeTokenizer::spelling(int id) const {
    const Name& name = names_[size_t(id)];
    return name.is_added ? parts_->added.tokens()[name.added].spelling : text(id);
}

bool BpeTokenizer::is_added(int id) const {
    return id >= 0 && id < size() && names_[size_t(id)].is_added;
}

bool BpeTokenizer::is_special(int id) const {
    return id >= 0 && id < size() && names_[size_t(id)].is_special;
}

std::string_view BpeTokenizer::bytes(int id) const {
    if (id < 0 || id >= size()) return {};
    const Name& name = names_[size_t(id)];
    return std::string_view(bytes_).substr(name.begin, name.size);
}

struct BpeTokenizer::Work {
    std::vector<int> ids;
    bool begins_text = true;  // nothing precedes the text that follows
    Bpe::Scratch scratch;
    Regex::Scratch regex_scratch;
};

std::vector<int> BpeTokenizer::encode(std::string_view text, const Recognition& recognition) const {
    if (text.size() > kMaxTextBytes) {
        throw UsageError("a text of " + std::to_string(text.size()) + " bytes; at most 64 MB");
    }
    assert(recognition.by_byte.empty() || recognition.by_byte.size() == text.size());
    std::string repaired;
    Recognition trusted = recognition;
    if (!is_utf8(text)) {
        trusted = {recognition.within(0, text.size())};
        append_utf8(repaired, text, true);
        text = repaired;
    }
    Work work;
    try {
        for (const AddedTokens::Piece& piece : parts_->added.cut(text, false, trusted)) {
            if (piece.token >= 0) {
                work.ids.push_back(piece.token);
            } else {
                const size_t begin = size_t(piece.text.data() - text.data());
                encode_raw(piece.text, trusted.part(begin, begin + piece.text.size()), work);
            }
            work.begins_text = false;
        }
    } catch (const Error& error) {
        throw Error(parts_->file + ": " + error.what(), error.cause());
    }
    return std::move(work.ids);
}

// Encodes the text between two added tokens of raw text.
void BpeTokenizer::encode_raw(std::string_view text, Recognition recognition, Work& work) const {
    std::string own(text);
    if (!parts_->normaliser.empty())
        own = parts_->normaliser.apply(std::move(own), recognition.by_byte, work.regex_scratch,
                                       Normaliser::most_bytes(text.size()));
    bool begins_text = work.begins_text;
    for (const AddedTokens::Piece& piece : parts_->added.cut(own, true, recognition)) {
        if (piece.token >= 0) {
            work.ids.push_back(piece.token);
        } else {
            encode_text(piece.text, begins_text, work);
        }
        begins_text = false;
    }
}

void BpeTokenizer::encode_text(std::string_view text, bool begins_text, Work& work) const {
    std::deque<std::string> made;
    for (const std::string_view word :
         parts_->pre_tokens.cut(text, begins_text, made, work.regex_scratch)) {
        parts_->bpe.encode(word, work.scratch, work.ids);
    }
}

std::vector<int> BpeTokenizer::encode_whole(std::string_view text, Recognised recognised) const {
    std::vector<int> ids = prefix();
    const std::vector<int> middle = encode(text, recognised);
    ids.insert(ids.end(), middle.begin(), middle.end());
    ids.insert(ids.end(), suffix().begin(), suffix().end());
    return ids;
}

std::string BpeTokenizer::decode(const std::vector<int>& ids, bool skip_special) const {
    std::vector<std::string> tokens;
    for (const int id : ids) {
        if (id < 0 || id >= size() || !names_[size_t(id)].is_used) continue;
        if (skip_special && is_special(id)) continue;
        tokens.emplace_back(spelling(id));
    }
    return parts_->decoder.decode(std::move(tokens));
}

}  // namespace aerie
