// Byte-level vocabularies are read by the name of their pre-tokenizer, scored ones as
// SentencePiece's.
#include "text/gguf_tokenizer.h"

#include <unordered_set>

#include "core/error.h"
#include "core/utf8.h"
#include "io/gguf/control_tokens.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/scored_pieces.h"

namespace aerie {

namespace {

class GgufTokenizerReader {
  public:
    explicit GgufTokenizerReader(const GgufMetadata& metadata)
        : metadata_(metadata),
          texts_(metadata.strings("tokenizer.ggml.tokens")),
          types_(metadata.find("tokenizer.ggml.token_type")
                     ? &metadata.integers("tokenizer.ggml.token_type")
                     : nullptr) {
        if (types_ && types_->size() != texts_.size())
            fail("'tokenizer.ggml.token_type' has not one entry for each token");
        for (const GgufControlToken& control_token : gguf_control_tokens(metadata))
            control_tokens_.insert(control_token.id);
    }

    BpeTokenizer scored() const;
    BpeTokenizer byte_level() const;
    int token(const char* key) const;  // -1: none
    bool flag(const char* key, bool fallback) const {
        return metadata_.find(key) ? metadata_.boolean(key) : fallback;
    }
    [[noreturn]] void fail(const std::string& why) const {
        throw Error(metadata_.file() + ": " + why);
    }

  private:
    PieceType written_type(size_t id) const;
    // A token with the text of a control token is one, whatever its type in the file.
    PieceType type(size_t id) const {
        const PieceType written = written_type(id);
        return written != PieceType::unknown && control_tokens_.contains(id) ? PieceType::control
                                                                             : written;
    }
    const GgufPreTokenizer& pre_tokenizer() const;
    BpeTokenizer::Parts byte_level_parts(const GgufPreTokenizer& pre_tokenizer) const;
    Merges merges(const Vocabulary& vocabulary) const;

    const GgufMetadata& metadata_;
    const GgufValue& texts_;
    const GgufValue* types_;
    std::unordered_set<size_t> control_tokens_;  // ids
};

PieceType GgufTokenizerReader::written_type(size_t id) const {
    const int64_t type = types_ ? types_->integer(id).value_or(0) : int64_t(PieceType::normal);
    if (type < 1 || type > 6)
        fail("token " + std::to_string(id) + " is of type " + std::to_string(type) +
             ", which is unknown");
    return PieceType(type);
}

int GgufTokenizerReader::token(const char* key) const {
    if (!metadata_.find(key)) return -1;
    const int64_t id = metadata_.integer(key);
    if (id < 0 || uint64_t(id) >= texts_.size())
        fail(in_quotes(key) + " is " + std::to_string(id) + ", which is no token");
    return int(id);
}

BpeTokenizer GgufTokenizerReader::scored() const {
    const GgufValue& scores = metadata_.numbers("tokenizer.ggml.scores");
    if (scores.size() != texts_.size())
        fail("'tokenizer.ggml.scores' has not one entry for each token");
    ScoredPieces pieces{.file = metadata_.file(),
                        .pieces = {},
                        .prepends_space = flag("tokenizer.ggml.add_space_prefix", true),
                        .removes_spaces = flag("tokenizer.ggml.remove_extra_whitespaces", false),
                        .bos = token("tokenizer.ggml.bos_token_id"),
                        .eos = token("tokenizer.ggml.eos_token_id"),
                        .adds_bos = flag("tokenizer.ggml.add_bos_token", true),
                        .adds_eos = flag("tokenizer.ggml.add_eos_token", false)};
    const int unknown = token("tokenizer.ggml.unknown_token_id");
    for (size_t id = 0; id < texts_.size(); ++id) {
        ScoredPiece piece{texts_.string(id), float(scores.number(id)), type(id)};
        // Files give it the type of a control token, too.
        if (int(id) == unknown) piece.type = PieceType::unknown;
        pieces.byte_fallback = pieces.byte_fallback || piece.type == PieceType::byte;
        pieces.pieces.push_back(piece);
    }
    return tokenizer_of(pieces);
}

const GgufPreTokenizer& GgufTokenizerReader::pre_tokenizer() const {
    const std::string_view name = metadata_.string("tokenizer.ggml.pre");
    if (const GgufPreTokenizer* pre_tokenizer = find_gguf_pre_tokenizer(name))
        return *pre_tokenizer;
    fail("'tokenizer.ggml.pre' is " + in_quotes(name) + "; known are " +
         gguf_pre_tokenizer_names());
}

// Files that declare a control token as a normal one may have merges that produce it. These are
// left out, for text must not become a control token.
Merges GgufTokenizerReader::merges(const Vocabulary& vocabulary) const {
    const GgufValue& list = metadata_.strings("tokenizer.ggml.merges");
    std::unordered_set<std::string_view> control_texts;
    for (const size_t id : control_tokens_) control_texts.insert(texts_.string(id));
    Merges merges;
    std::string whole;
    for (size_t rank = 0; rank < list.size(); ++rank) {
        const auto sides = sides_of(list.string(rank));
        if (!sides)
            throw Error("'tokenizer.ggml.merges': merge " + std::to_string(rank) +
                        " is no pair of tokens");
        whole.assign(sides->first).append(sides->second);
        if (control_texts.contains(whole) || control_texts.contains(sides->first) ||
            control_texts.contains(sides->second))
            continue;
        merges.add(vocabulary, whole, sides->first.size(), uint32_t(rank));
    }
    return merges;
}

BpeTokenizer::Parts GgufTokenizerReader::byte_level_parts(
    const GgufPreTokenizer& pre_tokenizer) const {
    Vocabulary vocabulary;
    std::vector<AddedToken> added;
    for (size_t id = 0; id < texts_.size(); ++id) {
        const std::string_view text = texts_.string(id);
        const PieceType kind = type(id);
        const bool special = kind == PieceType::control || kind == PieceType::unknown;
        if (special || kind == PieceType::user_defined)
            added.push_back({.text = std::string(text), .id = int(id), .special = special});
        else if (kind != PieceType::unused)
            vocabulary.add(text, int(id));
    }
    Merges table = merges(vocabulary);
    const BpeRules rules{.byte_level = true, .ignore_merges = pre_tokenizer.ignore_merges};
    BpeTokenizer::Parts parts{.file = metadata_.file(),
                              .bpe = Bpe(std::move(vocabulary), std::move(table), rules)};
    parts.normaliser = pre_tokenizer.normaliser();
    parts.pre_tokens = pre_tokenizer.pre_tokens();
    parts.added = AddedTokens(std::move(added), parts.normaliser);
    const int bos = token("tokenizer.ggml.bos_token_id"),
              eos = token("tokenizer.ggml.eos_token_id");
    if (bos >= 0 && flag("tokenizer.ggml.add_bos_token", pre_tokenizer.adds_bos))
        parts.prefix = {bos};
    if (eos >= 0 && flag("tokenizer.ggml.add_eos_token", false)) parts.suffix = {eos};
    parts.decoder = TokenDecoder({TokenDecoder::ByteLevel{}});
    return parts;
}

BpeTokenizer GgufTokenizerReader::byte_level() const {
    const GgufPreTokenizer& row = pre_tokenizer();
    const auto parts = [&] {
        try {
            return byte_level_parts(row);
        } catch (const Error& error) {
            const std::string what = error.what();
            if (what.starts_with(metadata_.file())) throw;
            fail(what);
        }
    };
    return BpeTokenizer(parts());
}

}  // namespace

GgufTokenizer gguf_tokenizer(const GgufMetadata& metadata) {
    const GgufTokenizerReader reader(metadata);
    const std::string_view model = metadata.string("tokenizer.ggml.model");
    if (model != "llama" && model != "gpt2")
        reader.fail("a tokenizer of kind " + in_quotes(model) + " is not supported");
    GgufTokenizer made{.bpe = model == "llama" ? reader.scored() : reader.byte_level(),
                       .bos = reader.token("tokenizer.ggml.bos_token_id"),
                       .eos = reader.token("tokenizer.ggml.eos_token_id"),
                       .chat_template = ""};
    if (metadata.find("tokenizer.chat_template"))
        made.chat_template = metadata.string("tokenizer.chat_template");
    return made;
}

}  // namespace aerie
